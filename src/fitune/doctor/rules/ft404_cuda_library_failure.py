"""A CUDA library (cuBLAS, cuDNN) fails

## What it says

`CUBLAS_STATUS_NOT_INITIALIZED`, `CUBLAS_STATUS_EXECUTION_FAILED`, `CUDNN_STATUS_...`, or a `libcudnn` that
cannot be loaded.

## Why

A second CUDA or cuDNN in `LD_LIBRARY_PATH` or from conda is loaded instead of the wheel's own; or it is the
late echo of an earlier error (a label or id out of range, a full card).

## How to know

Run once with `CUDA_LAUNCH_BLOCKING=1` or on the CPU: when the error changes into an index error, it was the
data.

## How to fix

Run with an empty `LD_LIBRARY_PATH` first; if that does not help, reinstall torch with the line that `fitune
doctor` prints.

## How safe

Safe: nothing that is learned changes.

## Sources

https://docs.pytorch.org/docs/stable/notes/cuda.html ; https://docs.nvidia.com/deeplearning/cudnn/latest/
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
FOLLOWS = {"FT531", "FT532", "FT533", "FT291", "FT301", "FT402"}
COMMAND = "env -u LD_LIBRARY_PATH python train.py"
PATTERNS = (
    r"cuDNN Frontend error|(?:CUSPARSE|CUSOLVER|CUFFT)_(?:STATUS_)?(?!SUCCESS|ALLOC_FAILED)[A-Z]{4}\w+"
    r"|cudnnException",
    r"GET was unable to find an engine to execute this computation",
    r"CUBLAS_STATUS_(?!ALLOC_FAILED|SUCCESS)\w+",
    r"CUDNN_STATUS_(?!ALLOC_FAILED|INTERNAL_ERROR|SUCCESS)\w+",
    r"Could not load library libcudnn|Unable to load any of \{libcudnn|cuDNN version incompatibility"
    r"|libcudnn\S*: cannot open shared object",
)


def read(log: Log) -> Iterator[Symptom]:
    """A CUDA library (cuBLAS, cuDNN) fails, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.9)
