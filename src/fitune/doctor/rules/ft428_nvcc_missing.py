"""A CUDA extension cannot be compiled: no nvcc, or another CUDA than torch's

## What it says

`CUDA_HOME environment variable is not set`, `MissingCUDAException: CUDA_HOME does not exist`, `The detected
CUDA version (12.4) mismatches the version that was used to compile PyTorch`, `nvcc: not found`.

## Why

DeepSpeed, apex or flash-attn compile code of their own; the wheel of torch brings CUDA's libraries, but no
compiler.

## How to know

`which nvcc` and `python -c "import torch; print(torch.version.cuda)"`.

## How to fix

For BERT-sized models none of them is needed: leave out `deepspeed`, `apex` and `flash_attention_2`; torch has
its own fused AdamW and attention. Otherwise install the toolkit of torch's own CUDA version and set
`CUDA_HOME`.

## How safe

Safe: rounding at most.

## Sources

https://www.deepspeed.ai/tutorials/advanced-install/ ;
https://docs.nvidia.com/cuda/cuda-installation-guide-linux/
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"CUDA_HOME (?:environment variable is not set|does not exist)|MissingCUDAException",
    r"detected CUDA version \S+ mismatches the version that was used to compile|CUDAMismatchException",
    r"FlashAttention is only supported on CUDA \d",
    r"Error building extension '\w+'",
    r"nvcc: (?:command )?not found|'nvcc' is not recognized|nvcc was not found",
)


def read(log: Log) -> Iterator[Symptom]:
    """A CUDA extension cannot be compiled: no nvcc, or another CUDA than torch's, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.94)
