"""A package is not installed in this Python

## What it says

`ModuleNotFoundError: No module named 'transformers'`, or `requires the PyTorch library but it was not found`.

## Why

The package is missing, or pip installed it into another Python than the one that runs.

## How to know

`python -m pip show NAME` with the very Python of the traceback.

## How to fix

Install it with the Python that runs the script: `python -m pip install NAME`; for training `pip install
"fitune[train]"`.

## How safe

Safe.

## Sources

https://packaging.python.org/en/latest/tutorials/installing-packages/
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom
from fitune.machine import CPU_PIP_COMMAND, Machine, choose_wheel
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
TOPIC = "torch"

NAMES = {
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "google": "protobuf",
    "flash_attn": "flash-attn",
    "torchcrf": "pytorch-crf",
    "dotenv": "python-dotenv",
}


def read(log: Log) -> Iterator[Symptom]:
    """A missing module; several are named in the order in which they are missed."""
    hits = log.find(
        r"(?:ModuleNotFoundError|ImportError): No module named ['\"]?([\w.]+)",
        (
            r"requires? (?:the )?['\"`]?(PyTorch|accelerate|sentencepiece"
            r"|datasets)\b[^\n]*(?:not found|library but|pip install)"
        ),
        r"None of (PyTorch), TensorFlow[^\n]* have been found",
        r"python[\d.]*(?:\.exe)?: No module named (\w+)",
        r"Using the `Trainer` with `PyTorch` requires `(accelerate)",
        r"requires (tensorboard|wandb|swanlab|mlflow) to be installed",
        r"you need to install the following dependencies\[?['\"](\w+)",
        r"Missing optional dependency ['\"](\w+)|(?:bash|zsh"
        r"|sh): (?:line \d+: )?(?:\d+: )?(\w+): (?:command )?not found",
        r"无法将“(\w+)”项识别为|'(\w+)' (?:不是内部或外部命令|is not recognized as)|term '(\w+)' is not recognized",
        r"(\w+) is not installed\. Please install it|requires the (\w+) (?:library|package) but it was not found",
    )
    if shadowed := log.find(r"partially initialized module '(datasets|transformers|evaluate|tokenizers|accelerate)'"):
        title = _("A file of your own named {module}.py hides the package", module=shadowed[0].match[1])
        text = _("rename the file (and delete its __pycache__), then run again")
        yield symptom(shadowed, confidence=0.95, title=title, fixes=(Fix(safety="safe", text=text),))
        return
    if not hits:
        return
    module = next(group for group in hits[0].match.groups() if group).split(".")[0]
    if module in {"python", "python3", "pip", "conda", "nvidia"}:
        text = _("install Python 3.10 to 3.12 and tick 'Add python.exe to PATH', or type py (Windows), python3 (Linux)")
        title = _("{module} is not a command on this machine", module=module)
        if module != "nvidia":
            yield symptom(hits, confidence=0.85, title=title, fixes=(Fix(safety="safe", text=text),))
        return
    package = NAMES.get(module, "torch" if module == "PyTorch" else module)
    fix = Fix(
        safety="safe",
        text=_("install it into the Python that runs: {package}", package=package),
        command=f"python -m pip install {package}",
    )
    yield symptom(
        hits, confidence=0.9, title=_("{module} is not installed in this Python", module=module), fixes=(fix,)
    )


def examine(machine: Machine) -> Iterator[Symptom]:
    """No torch, or no transformers."""
    if machine.torch.state == "missing":
        wheel = choose_wheel(
            machine.driver.newest_cuda, tuple(d.compute_capability for d in machine.devices if d.compute_capability)
        )
        command = (
            wheel.pip_command.replace("--force-reinstall ", "")
            if wheel
            else CPU_PIP_COMMAND.replace("--force-reinstall ", "")
        )
        text = _('install torch, then fitune\'s training half: pip install "fitune[train]"')
        yield Symptom(
            evidence=(_("torch is not installed in this Python"),),
            fixes=(Fix(safety="safe", text=text, command=command),),
        )
    elif "transformers" not in machine.packages and machine.torch.state == "ok":
        text = _("install fitune's training half")
        yield Symptom(
            evidence=(_("transformers is not installed in this Python"),),
            fixes=(Fix(safety="safe", text=text, command='pip install "fitune[train]"'),),
        )
