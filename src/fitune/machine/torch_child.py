"""Ask torch and transformers in a child process with a time limit: a library that hangs or aborts stays outside."""

import json
import subprocess
import sys
import time
from typing import Any

from fitune.machine.values import TorchBuild

_MARK = "fitune-answer:"

# The child lives for one answer: collecting garbage while it imports, and tearing modules down at its end, are a third
# of its time. transformers' own __init__ reads every model file, which takes longer than all that is asked of it here
# (are its requirements met, can its compiled parts be loaded): it is run only where those parts raise.
_ASK = f"""
import gc, json, os, sys, warnings
gc.disable()
def told(name, answer):
    print("{_MARK}" + json.dumps([name, answer]), flush=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
    flags = getattr(torch._C, "_cuda_getArchFlags", lambda: "")()
    there = bool(torch.cuda.is_available())
    words = [str(w.message) for w in caught]
told("torch", {{
    "version": str(torch.__version__),
    "cuda": torch.version.cuda,
    "hip": getattr(torch.version, "hip", None),
    "cuda_available": there,
    "arch_list": (flags or "").split(),
    "device_count": torch.cuda.device_count() if there else 0,
    "cudnn": torch.backends.cudnn.version() if torch.version.cuda else None,
    "warning": " ".join(w for w in words if "cuda" in w.lower() or "nvidia" in w.lower())[:600],
}})
def parts_of_transformers():
    import importlib.metadata, importlib.util
    spec = importlib.util.find_spec("transformers")
    if spec is None:
        return
    sys.modules["transformers"] = shell = importlib.util.module_from_spec(spec)
    shell.__version__ = importlib.metadata.version("transformers")
    import tokenizers, safetensors, transformers.dependency_versions_check, transformers.utils
try:
    try:
        parts_of_transformers()
    except Exception:
        for name in [name for name in sys.modules if name.split(".")[0] == "transformers"]:
            del sys.modules[name]
        import transformers
    told("transformers", "")
except ModuleNotFoundError as error:
    told("transformers", "" if error.name == "transformers" else f"{{type(error).__name__}}: {{error}}")
except Exception as error:
    told("transformers", f"{{type(error).__name__}}: {{error}}"[:600])
sys.stderr.flush()
os._exit(0)
"""


def _answers(output: bytes | None) -> dict[str, Any]:
    lines = (output or b"").decode("utf-8", "replace").splitlines()
    return dict(json.loads(line.removeprefix(_MARK)) for line in lines if line.startswith(_MARK))


def _is_working(pid: int, limit_seconds: float) -> bool:
    """Whether a child has used the processor: on a loaded machine a healthy torch is slow, a hanging one is idle."""
    import psutil

    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return False
    return times.user + times.system > max(0.3, 0.02 * limit_seconds)


def _wait(child: subprocess.Popen[bytes], limit_seconds: float) -> tuple[bytes, str, int | None]:
    """(output, error text, exit code); exit code None: it hung. A child that works gets three times the limit."""
    try:
        output, errors = child.communicate(timeout=limit_seconds)
    except subprocess.TimeoutExpired:
        try:
            if not _is_working(child.pid, limit_seconds):
                raise
            output, errors = child.communicate(timeout=2 * limit_seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            output, _errors = child.communicate()
            return output, f"no answer within {limit_seconds:g} s", None
    return output, errors.decode("utf-8", "replace").strip(), child.returncode


def ask_torch(limit_seconds: float = 20.0, python: str = sys.executable) -> tuple[TorchBuild, str]:
    """What torch says of itself, and what ``import transformers`` says when it fails ("" when it works or is absent).

    Never raises for what torch does: a missing, raising, aborting or hanging torch is a state of TorchBuild.
    """
    started = time.monotonic()
    command = [python, "-c", _ASK]
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as caught:
        return TorchBuild(state="failed", error=str(caught)), ""
    output, error_text, exit_code = _wait(child, limit_seconds)
    seconds = round(time.monotonic() - started, 2)
    told = _answers(output)
    if "torch" in told:
        return TorchBuild(state="ok", seconds=seconds, exit_code=0, **told["torch"]), str(told.get("transformers", ""))
    error = error_text.splitlines()[-1] if error_text else ""
    if exit_code is None:
        return TorchBuild(state="hung", error=error, seconds=seconds), ""
    if "No module named 'torch'" in error:
        return TorchBuild(state="missing", seconds=seconds), ""
    # Windows reports a crash as a large positive NTSTATUS, POSIX as a negative signal number.
    crashed = exit_code < 0 or exit_code > 0x40000000
    return TorchBuild(state="crashed" if crashed else "failed", error=error, exit_code=exit_code, seconds=seconds), ""
