"""Another process holds memory on this card

## What it says

The out-of-memory message counts memory of other processes, or the driver lists them on the card.

## Why

A dead notebook kernel, an inference server, another user's run, a browser or a remote desktop takes the memory
that the run needs.

## How to know

`fitune doctor` shows pid, name and owner; the message says `Process N has X GiB memory in use`.

## How to fix

Stop your own old process (its pid is in the evidence), close the browser or notebook, or take another card with
`CUDA_VISIBLE_DEVICES`.

## How safe

Another card is safe. Stopping a process loses what it had not saved; never stop one that is not yours.

## Sources

pytorch/pytorch#27600 ; https://docs.nvidia.com/deploy/nvml-api/
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.oom import find_oom, gib
from fitune.doctor.symptom import Symptom
from fitune.machine import Device, Machine
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
TOPIC = "cards"


def read(log: Log) -> Iterator[Symptom]:
    """An out-of-memory message in which others hold a good part of the card."""
    if hits := log.find(r"CUDA-capable device(?:s|\(s\))? (?:is|are|is/are) (?:all )?busy or unavailable"):
        yield symptom(hits, confidence=0.9, title=_("Another process has this card for itself alone"))
        return
    oom = find_oom(log)
    if oom is None or oom.foreign_bytes < max(2**30, 0.12 * oom.total_bytes):
        return
    title = _("Other processes hold {gib} of this card's memory", gib=gib(oom.foreign_bytes))
    yield symptom(oom.hits, confidence=0.96 if oom.names_others else 0.85, title=title)


def examine(machine: Machine) -> Iterator[Symptom]:
    """Processes on the cards that hold at least 300 MiB, and memory that nobody owns up to."""
    for device in machine.devices:
        known = 0
        for user in device.users:
            held = user.used_bytes or 0
            known += held
            if held >= 300 * 2**20 or (
                user.used_bytes is None and user.kind in {"notebook", "python", "inference server"}
            ):
                yield _user(device, user.pid, user.name, user.owner, user.kind, user.used_bytes)
        unknown = device.used_bytes - known
        if not any(user.used_bytes is None for user in device.users) and unknown > max(
            2**30, 0.1 * device.memory_bytes
        ):
            yield Symptom(
                evidence=(_hidden(device.index, unknown),),
                severity="warning",
                confidence=0.7,
            )


def _hidden(index: int, count: int) -> str:
    return _("card {index}: {gib} used by processes that cannot be seen from here", index=index, gib=gib(count))


def _user(device: Device, pid: int, name: str, owner: str, kind: str, used_bytes: int | None) -> Symptom:
    owners = {"own": _("yours"), "foreign": _("another user's"), "unknown": _("owner unknown")}
    kinds = {
        "notebook": _("a notebook kernel"),
        "browser": _("a browser"),
        "remote desktop": _("a remote desktop"),
        "desktop": _("the desktop"),
        "python": _("a Python program"),
        "inference server": _("an inference server"),
        "other": _("a program"),
    }
    held = gib(used_bytes) if used_bytes is not None else _("an unknown amount")
    text = _(
        "card {index}: {held} held by pid {pid} {name} ({kind}, {owner})",
        index=device.index,
        held=held,
        pid=pid,
        name=name or "?",
        kind=kinds[kind],
        owner=owners[owner],
    )
    if owner == "own" and kind in {"notebook", "python", "inference server"}:
        fix = Fix(
            safety="unsafe",
            text=_("if it is no longer needed, stop it; what it had not saved is lost"),
            command=f"kill {pid}",
        )
    elif owner == "own":
        fix = Fix(safety="display", text=_("close it while training runs"))
    else:
        fix = Fix(
            safety="safe",
            text=_("it is not yours: take another card, or ask its owner"),
            command="CUDA_VISIBLE_DEVICES=N fitune train " + _("FILE"),
        )
    return Symptom(evidence=(text,), severity="warning", fixes=(fix,))
