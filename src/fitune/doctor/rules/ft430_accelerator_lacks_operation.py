"""This accelerator lacks an operation or a number type

## What it says

`The operator 'aten::...' is not currently implemented for the MPS device`, `the MPS framework doesn't support float64`,
or the like on NPU, XPU and DirectML.

## Why

PyTorch's backends other than CUDA implement only a part of its operations and number types.

## How to know

The message names the operation or the number type and the device.

## How to fix

On a Mac start with `PYTORCH_ENABLE_MPS_FALLBACK=1` (the missing operations then run on the CPU), keep numbers in
float32, and update torch; on an NPU install the torch_npu that belongs to your torch and CANN.

## How safe

Safe; what falls back to the CPU is slower.

## Sources

https://docs.pytorch.org/docs/stable/notes/mps.html ; https://docs.pytorch.org/docs/stable/mps_environment_variables.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
COMMAND = "export PYTORCH_ENABLE_MPS_FALLBACK=1"
PATTERNS = (
    r"MPS does not support|MPS device does not support",
    r"not (?:currently )?(?:implemented|supported) for the (?:MPS|XPU|HPU|DML|NPU|PrivateUse1) (?:device|backend)",
    r"MPS framework doesn'?t support|MPS: Unsupported|BFloat16 is not supported on MPS|not supported on MPS",
    r"Could not run '(?:aten|torchvision|quantized)::\S+' with arguments from the '(?!CUDA|CPU)\w+' backend",
    r"EZ\d{4}: .*(?:not support|unsupported)|opType \S+ is not supported"
    r"|Op \w+ does not has any binary|call aclnn\w+ failed|Cannot find bin of op type",
)


def read(log: Log) -> Iterator[Symptom]:
    """This accelerator lacks an operation or a number type, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.94)
