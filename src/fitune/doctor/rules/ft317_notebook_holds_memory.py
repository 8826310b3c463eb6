"""A notebook still holds the memory of an earlier run

## What it says

Out of memory right when the model is moved to the card, in a notebook, though no other process is there.

## Why

The earlier model, optimizer or the exception of the last failure (with all its frames) is still alive in the
kernel.

## How to know

The traceback has a cell (`Cell In[5]`, `<ipython-input`), and the card was full before training started.

## How to fix

Restart the kernel and run the cells once; or `del model, trainer`, then `import gc, torch; gc.collect();
torch.cuda.empty_cache()`.

## How safe

Safe, but variables of the kernel are lost; save first.

## Sources

pytorch/pytorch#27600
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.oom import find_oom
from fitune.doctor.symptom import Symptom

SEVERITY = "error"


def read(log: Log) -> Iterator[Symptom]:
    """Out of memory in a notebook, while the model is moved or for the second time."""
    oom = find_oom(log)
    kernels = log.find(r"\|\s*\d+\s.*ipykernel_launcher.*MiB")
    if oom is not None and len(kernels) > 1:
        yield symptom(kernels[:2] + oom.hits[:1], confidence=0.95)
        return
    cells = log.find(r"Cell In\s*\[\d+\]|<ipython-input-|ipykernel_\d+|/tmp/ipykernel")
    if oom is None or not cells or oom.names_others:
        return
    moving = oom.frames(
        log, r"in _apply\b|\.to\(['\"]?(?:cuda|device)|\.cuda\(\)|in _move_model_to_device|in convert\b"
    )
    # A cell that was stopped leaves its model on the card, and the next one makes another.
    stopped = log.find(r"^KeyboardInterrupt\b")
    if stopped and stopped[0].line.number < oom.hits[0].line.number:
        yield symptom(stopped[:1] + oom.hits[:1], confidence=0.88)
        return
    # The first line of a notebook's traceback names the exception once more.
    messages = [hit for hit in oom.hits if "Tried to allocate" in hit.line.text or "CUDA error" in hit.line.text]
    if moving or len(messages) > 1:
        yield symptom(cells[:1] + oom.hits[:1], confidence=0.9)
