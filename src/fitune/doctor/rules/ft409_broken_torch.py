"""PyTorch is installed but cannot be loaded

## What it says

`DLL load failed`, `WinError 126`, `undefined symbol`, a `lib...so` that cannot be opened, `Illegal
instruction`, or Python itself ends at `import torch`.

## Why

A library that torch needs is missing (Windows: Visual C++ runtime), of another version (a second CUDA, MKL
2024.1 from conda, an old glibc), a file named `torch.py` shadows it, or the processor lacks AVX.

## How to know

`python -c "import torch"` in an empty folder shows the same.

## How to fix

Make a fresh virtual environment and install torch there with the line that `fitune doctor` prints; on Windows
install the Visual C++ 2015-2022 runtime.

## How safe

Safe: the old environment stays as it is.

## Sources

https://pytorch.org/get-started/locally/ ; pytorch/pytorch#123097
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches, symptom
from fitune.doctor.symptom import Symptom
from fitune.machine import CPU_PIP_COMMAND, Machine, choose_wheel
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
TOPIC = "torch"
PATTERNS = (
    r"DLL load failed|\[WinError (?:126|127|182|193|1114)\]",
    # Another package's library is of another torch: FT410.
    r"^(?!.*(?:libcudnn|Could not load library|flash_?attn|xformers|torch(?:vision|audio|text|_scatter|_sparse)/|apex"
    r"|deepspeed|bitsandbytes|causal_conv1d|auto_gptq)).*undefined symbol: \S+",
    r"(?:lib(?:cudart|cublas|cusparse|nccl|torch\w*|c10\w*|nvJitLink|cufft|curand|cusolver"
    r"|cupti)\S*): cannot open shared object file",
    r"cannot allocate memory in static TLS block",
    r"Illegal instruction|非法指令",
    r"partially initialized module 'torch'",
)
OLD_SYSTEM = r"version [`'\"]?(?:GLIBC(?:XX)?|CXXABI)_[\d.]+['\"]? not found"
OPENMP = r"OMP: Error #15"


def read(log: Log) -> Iterator[Symptom]:
    """PyTorch is installed but cannot be loaded, seen in a log; two causes have a title and a fix of their own."""
    if hits := log.find(OLD_SYSTEM):
        text = _(
            "GLIBCXX: conda install -c conda-forge libstdcxx-ng, then export LD_LIBRARY_PATH=$CONDA_PREFIX/lib; GLIBC: "
            "install an older version of the package in the message, or work in a container with a newer system"
        )
        title = _("This system's C or C++ library is older than the package wants")
        yield symptom(hits, confidence=0.97, title=title, fixes=(Fix(safety="safe", text=text),))
    elif hits := log.find(OPENMP):
        text = _(
            "make an environment into which everything is installed with pip alone; KMP_DUPLICATE_LIB_OK=TRUE goes on "
            "today, but may give wrong numbers"
        )
        title = _("Two OpenMP libraries are loaded, one of conda and one of pip")
        yield symptom(hits, confidence=0.96, title=title, fixes=(Fix(safety="display", text=text),))
    else:
        yield from matches(log, PATTERNS, confidence=0.95)


def examine(machine: Machine) -> Iterator[Symptom]:
    """A torch that raises, aborts or hangs on import."""
    build = machine.torch
    words = {
        "failed": _("import torch fails"),
        "crashed": _("import torch ends the process (exit code {code})", code=build.exit_code or 0),
        "hung": _("import torch does not return"),
    }
    if build.state not in words:
        return
    wheel = choose_wheel(
        machine.driver.newest_cuda, tuple(d.compute_capability for d in machine.devices if d.compute_capability)
    )
    command = wheel.pip_command if wheel else CPU_PIP_COMMAND
    evidence = words[build.state] + (f": {build.error}" if build.error else "")
    text = _("reinstall torch, best in a fresh virtual environment")
    yield Symptom(
        evidence=(evidence,),
        fixes=(Fix(safety="safe", text=text, command=command),),
        confidence=0.7 if build.state == "hung" else 0.95,
    )
