# ruff: noqa: E501
"""The fixture logs: blocks of ``logs/*.txt`` and the ways in which real consoles spoil them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "logs"
TEARS = "  7%|▋         | 70/1000 [00:31<06:51,  2.26it/s]"


@dataclass(frozen=True)
class Case:
    """One log and the finding that must come first."""

    name: str
    code: str
    text: str


def cases() -> list[Case]:
    """Every hand-written block: ``### name | code`` and its lines."""
    found: list[Case] = []
    for path in sorted(FOLDER.glob("*.txt")):
        for block in path.read_text(encoding="utf-8").split("### ")[1:]:
            head, text = block.split("\n", 1)
            name, code = head.rsplit(" | ", 1)
            found.append(Case(f"{path.stem}: {name}", code.strip(), text))
    return found


def healthy_cases() -> Iterator[tuple[str, str]]:
    """(name, log): every block ``### name`` of ``logs/healthy``: frightening words, nothing wrong."""
    for path in sorted((FOLDER / "healthy").glob("*.txt")):
        for block in path.read_text(encoding="utf-8").split("### ")[1:]:
            name, text = block.split("\n", 1)
            yield f"{path.stem}: {name}", text


def _plain(text: str) -> bytes:
    return text.encode()


def _windows(text: str) -> bytes:
    """CRLF in the code page of a Chinese Windows."""
    return text.replace("\n", "\r\n").encode("gb18030")


def _utf16(text: str) -> bytes:
    """What PowerShell's ``>`` writes."""
    return text.replace("\n", "\r\n").encode("utf-16")


def _coloured(text: str) -> bytes:
    """ANSI colours around every word of the last line, a window title before the first."""
    lines = text.rstrip("\n").split("\n")
    lines[-1] = " ".join(f"\x1b[31m{word}\x1b[0m" for word in lines[-1].split(" "))
    return ("\x1b]0;train\x07" + "\n".join(lines) + "\n").encode()


def _bars(text: str) -> bytes:
    """A progress bar's carriage returns before the first line, none of them ended by a newline."""
    bars = "".join(
        f"\rLoading: {n}%|{'█' * (n // 10)}| {n}/100 [00:0{n % 10}<00:01, 40.1B/s]" for n in range(0, 101, 20)
    )
    return (bars + "\r" + text).encode()


def _ranks(text: str) -> bytes:
    """torchrun's prefix on every line, another rank's harmless lines between them."""
    lines = text.rstrip("\n").split("\n")
    mixed = [row for line in lines for row in (f"[rank0]: {line}", "[rank1]: waiting for rank 0")]
    return ("\n".join(mixed) + "\n").encode()


def _stamped(text: str) -> bytes:
    """A healthy beginning, then the error, with a blank line and a prompt after it."""
    head = (
        "2026-11-02 10:21:33,101 INFO loading data from data/train.json\n"
        "Some weights of BertForTokenClassification were not initialized from the model checkpoint at bert-base-chinese and are "
        "newly initialized: ['classifier.bias', 'classifier.weight']\n"
        "/venv/lib/python3.10/site-packages/transformers/utils/generic.py:311: FutureWarning: `torch.utils._pytree._register_pytree_node` is deprecated.\n"
    )
    return (head + text + "\n(base) root@container:/workspace# \n").encode()


def _truncated(text: str) -> bytes:
    """Only the last 1,500 characters were kept, cut in the middle of a line."""
    return ('ackages/torch/nn/modules/module.py", line 1511, in _call_impl\n' + text[-1500:]).encode()


SPOILS: dict[str, Callable[[str], bytes]] = {
    "plain": _plain,
    "windows": _windows,
    "utf16": _utf16,
    "coloured": _coloured,
    "bars": _bars,
    "ranks": _ranks,
    "stamped": _stamped,
    "truncated": _truncated,
}


def spoiled() -> Iterator[tuple[str, str, bytes]]:
    """(name, code, bytes): every case plain, and in two further shapes chosen by its place in the list."""
    names = [name for name in SPOILS if name != "plain"]
    for index, case in enumerate(cases()):
        for spoil in ("plain", names[index % len(names)], names[(index * 3 + 1) % len(names)]):
            yield f"{case.name} [{spoil}]", case.code, SPOILS[spoil](case.text)
