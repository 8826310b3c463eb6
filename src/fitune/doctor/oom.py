"""What an out-of-memory message says, in the words of PyTorch 1.x and 2.x."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fitune.doctor.log import Hit, Log
from fitune.doctor.memory_readings import growing_memory
from fitune.messages import _

_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "bytes": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}
_SIZE = r"([\d.]+) ?(bytes|[KMGT]iB|[KMG]B)"
_FIELDS = {
    "tried": r"Tried to allocate " + _SIZE,
    "total": rf"(?:total capac?i?ty of {_SIZE}|; {_SIZE} total capacity)",
    "free": rf"(?:of which {_SIZE} is free|; {_SIZE} free;)",
    "allocated": rf"(?:{_SIZE} is allocated by PyTorch|; {_SIZE} already allocated)",
    "idle": rf"{_SIZE} is reserved by PyTorch but unallocated",
    "reserved": rf"; {_SIZE} reserved in total by PyTorch",
    "cached": rf"; {_SIZE} cached",
    "own": rf"this process has {_SIZE} memory in use",
}
_MESSAGE = (
    r"(?:CUDA|HIP|NPU|XPU|MUSA|MLU|SDAA) out of memory|(?:CUDA|HIP) error: out of memory|CUDA_ERROR_OUT_OF_MEMORY"
    r"|(?<!ray\.exceptions\.)(?<!MPSOut)(?<!Driver)OutOfMemoryError|Out of memory error on GPU \d+"
    r"|cuda runtime error \(2\)|error=2 : out of memory"
    r"|ran out of memory trying to allocate|ResourceExhaustedError.*(?:OOM when allocating|failed to allocate memory)"
    r"|OOM when allocating tensor|No executable batch size found, reached zero"
    r"|reserved by PyTorch but unallocated|reserved in total by PyTorch"
)
RESUMED = (
    r"Continuing training from|arguments do not match the ones in|Resuming (?:training )?from|从检查点",
    r"resume_from_checkpoint[=: ]+\S*checkpoint-\d|Loading model from \S*checkpoint-\d+",
)
# What a context takes that no PyTorch counter shows (see the allocator's facts: 287-1,343 MiB seen).
_CONTEXT_BYTES = 1400 * 2**20


_OTHER_BARS = r"Map|Loading|Downloading|Generating|Tokeniz|B/s|examples/s|Filter|Materializ"


def gib(count: float) -> str:
    """Bytes for a reader: "1.5 GiB" or "300 MiB"."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def _bytes(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    if not match:
        return 0
    number, unit = [group for group in match.groups() if group][:2]
    return int(float(number) * _UNITS[unit])


@dataclass(frozen=True)
class OutOfMemory:
    """One log's out-of-memory, parsed. Sizes are 0 where the message does not give them."""

    hits: list[Hit]
    tried_bytes: int
    total_bytes: int
    free_bytes: int
    idle_bytes: int
    """Reserved by PyTorch but unallocated."""
    foreign_bytes: int
    """Held by other processes, as far as the message tells."""
    names_others: bool
    """The message itself lists other processes."""
    step: int | None
    """Where the last progress bar before it stood."""
    resumed: bool
    growing: bool

    def frames(self, log: Log, pattern: str) -> list[Hit]:
        """Lines of the traceback above the message that match."""
        last = self.hits[0].line.number
        first = max(
            (
                hit.line.number
                for hit in log.find(r"Traceback \(most recent call last\)|^-{20,}$")
                if hit.line.number < last
            ),
            default=last - 80,
        )
        return [hit for hit in log.find(pattern, flags=0) if first <= hit.line.number < last]

    def summary(self) -> str:
        """A title with the sizes, where they are known; empty otherwise."""
        if not (self.tried_bytes and self.total_bytes):
            return ""
        return _(
            "CUDA out of memory: {tried} asked for, {free} free of {total}",
            tried=gib(self.tried_bytes),
            free=gib(self.free_bytes),
            total=gib(self.total_bytes),
        )


def _step_before(log: Log, number: int) -> int | None:
    for line in reversed(log.lines):
        # Bars of loading and tokenising are not training steps.
        near = number - 200 <= line.number <= number and not re.search(_OTHER_BARS, line.text)
        if near and (match := re.search(r"\b(\d+)/(\d+) \[", line.text)):
            return int(match[1])
        if line.number <= number and (
            match := re.search(
                r"['\"]?\b(?:global_)?step['\"]?(?:\s*[:=]\s*|\s+)(\d+)|第 ?(\d+) ?步", line.text, re.IGNORECASE
            )
        ):
            return int(match[1] or match[2])
    return None


def _without_own(named: list[int], held_by_torch: int) -> list[int]:
    """In a container a process does not know its own pid, and the message lists it among the others."""
    own = [n for n in named if -(2**27) <= n - held_by_torch <= _CONTEXT_BYTES]
    return [n for n in named if n != min(own)] if own else named


def find_oom(log: Log) -> OutOfMemory | None:
    """The log's out-of-memory on a CUDA card; None when there is none."""
    hits = log.find(_MESSAGE)
    if not hits:
        return None
    described = next((hit for hit in hits if "Tried to allocate" in hit.line.text), hits[0])
    start = next(
        i for i, line in enumerate(log.lines) if line is described.line or line.number == described.line.number
    )
    # A console may have wrapped the message over several lines.
    text = " ".join(line.text.strip() for line in log.lines[start : start + 4])
    size = {name: _bytes(pattern, text) for name, pattern in _FIELDS.items()}
    named = [
        int(float(number) * _UNITS[unit])
        for number, unit in re.findall(rf"Process \d+ has {_SIZE} memory in use", text)
    ]
    # Before PyTorch 1.4 "cached" was what is held beyond the allocated.
    size["reserved"] = size["reserved"] or (size["allocated"] + size["cached"] if size["cached"] else 0)
    old_style = bool(size["reserved"])
    if named and not size["own"]:
        named = _without_own(named, size["allocated"] + size["idle"])
    idle = size["idle"] or (max(0, size["reserved"] - size["allocated"]) if old_style else 0)
    foreign = sum(named)
    if not named and size["own"]:
        foreign = max(0, size["total"] - size["free"] - size["own"])
    elif not named and old_style:
        foreign = max(0, size["total"] - size["free"] - size["reserved"] - _CONTEXT_BYTES)
    number = hits[0].line.number
    return OutOfMemory(
        hits=[described, *[hit for hit in hits if hit is not described]],
        tried_bytes=size["tried"],
        total_bytes=size["total"],
        free_bytes=size["free"],
        idle_bytes=idle,
        foreign_bytes=foreign,
        names_others=bool(named),
        step=_step_before(log, number),
        resumed=log.has(*RESUMED),
        growing=bool(growing_memory(log, number)),
    )
