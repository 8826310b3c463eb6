"""The exception that a log ends with, read from Python's or a notebook's traceback."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fitune.doctor.log import Hit, Log

_LAST = (
    r"^(?:E\s+|[\d:,. -]*(?:ERROR|CRITICAL)\W+)?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt"
    r"|StopIteration))"
    r"(?:: (.*)|:?\s*$)"
)
_FRAME = r"^\s*File \"?([^\",]+?)\"?[:,] (?:line )?(\d+)(?:, in (\S+))?"
_CELL = r"^\s*(?:Cell In|Input In|In|<ipython-input-[\w-]+>)\s*\[?\d*\]?.*(?:line (\d+)|in )"
_LIBRARY = re.compile(
    r"site-packages|dist-packages|[\\/]lib[\\/]python\d|[\\/]python\d[\d.]*[\\/]|Anaconda\d?[\\/]lib"
    r"|[\\/]lib[\\/]\w+\.py$"
    r"|<frozen|<string>|<__array_function__|\.pyx$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"['\"]?\b(?:train_|eval_)?(?:loss|runtime)['\"]?\s*[:=]\s*['\"]?\d|\bepoch\b.*\d.*\bloss\b", re.I
)

_ENDED_BADLY = re.compile(
    r"Traceback \(most recent call last\)|exitcode|ChildFailedError|Watchdog caught"
    r"|^\s*[\w.]*(?:Error|Exception): |\bKilled\b"
)


@dataclass(frozen=True)
class Raised:
    """One exception: its class without modules, its words, and the code it came from."""

    hit: Hit
    name: str
    words: str
    path: str
    """File of the innermost frame; empty when the log shows none."""
    source: str
    """The innermost line of code that the log shows."""
    own: bool
    """The innermost frame lies outside the installed packages (or no frame is shown)."""
    frames: tuple[str, ...]


def find_raised(log: Log) -> Raised | None:
    """The log's last exception; None when there is none, or when training went on after it."""
    hits = [
        hit for hit in log.find(_LAST, flags=0) if not re.search(r"ChildFailedError|CalledProcessError", hit.match[1])
    ]
    if not hits:
        return None
    hit = hits[-1]
    index = log.lines.index(hit.line)
    if any(_GOES_ON.search(line.text) for line in log.lines[index + 1 :]):
        return None
    start = max((i for i in range(index) if "Traceback (most recent" in log.lines[i].text), default=max(0, index - 60))
    paths: list[str] = []
    source = ""
    for i in range(start, index):
        text = log.lines[i].text
        if frame := re.match(_FRAME, text):
            paths.append(frame[1])
            source = log.lines[i + 1].text.strip() if i + 1 < index else ""
        elif re.match(_CELL, text):
            paths.append("Cell")
        elif arrow := re.match(r"\s*-+>\s*\d+\s(.*)", text):
            source = arrow[1].strip()
    path = paths[-1] if paths else ""
    name = hit.match[1].rsplit(".", 1)[-1]
    return Raised(hit, name, (hit.match[2] or "").strip(), path, source, not _LIBRARY.search(path), tuple(paths))


def went_on(log: Log, number: int) -> bool:
    """Whether training went on after that line and no exception came later."""
    after = [line.text for line in log.lines if line.number > number]
    if any(_ENDED_BADLY.search(text) for text in after):
        return False
    return sum(1 for text in after if _GOES_ON.search(text)) >= 2


_ASKED_FOR_CODE = re.compile(r"echo \$\?$|echo %errorlevel%$|\$LASTEXITCODE$", re.IGNORECASE)
_FINISHED = re.compile(
    r"\b(?:saved|finished|completed?|done)\b|train_runtime|完成|结束|已保存"
    r"|\b(?:macro|micro|test|eval|dev)?[_ ]?(?:f1|acc\w*)\W+\d",
    re.IGNORECASE,
)


def finished_well(log: Log) -> bool:
    """Whether the log is of a training that ended as it should: what looks like errors in it are texts of its data."""
    lines = [line.text.strip() for line in log.lines if line.text.strip()]
    if not lines or any(text.startswith("Traceback (most recent call last)") for text in lines):
        return False
    if lines[-1] == "0" and len(lines) > 1 and _ASKED_FOR_CODE.search(lines[-2]):
        return True
    return bool(_FINISHED.search(lines[-1])) and sum(1 for text in lines if _GOES_ON.search(text)) >= 3


def ended_quietly(log: Log) -> bool:
    """Whether a log in which nothing was found shows a training to its end: a last line that says so, a loss before."""
    lines = [line.text.strip() for line in log.lines if line.text.strip()]
    if any(_ENDED_BADLY.search(text) for text in lines):
        return False
    return any(_FINISHED.search(text) for text in lines[-3:]) and any(_GOES_ON.search(text) for text in lines)


def missing_key(raised: Raised) -> str:
    """What a KeyError missed: "column", "label" or "" (not a KeyError, or neither of the two)."""
    if (
        raised.name != "KeyError"
        or not re.match(r"['\"\d-]", raised.words)
        or raised.words.startswith(("'eval_", '"eval_'))
    ):
        return ""
    # A key that the line writes out is asked of what stands before it: label2id[row["x"]] lacks a column, not a label.
    key = re.escape(raised.words.strip("'\""))
    asked_of = re.search(r"(\w+)\[\s*['\"]" + key + r"['\"]\s*\]", raised.source)
    if re.search(
        r"(?:label|tag|class|cate\w*|intent|type|ner)\w*?_?(?:2|to_?)_?(?:id|idx|index|num)|(?:label|tag"
        r"|class)_?(?:map|dict|vocab)",
        asked_of[1] if asked_of else raised.source,
        re.I,
    ):
        return "label"
    if any(
        re.search(r"pandas|datasets[\\/](?:formatting|arrow|features)|_libs[\\/]index", path) for path in raised.frames
    ) or (re.search(r"\b(?:df|data|row|batch|examples?|sample|item|record|train|dev|test)\w*\[['\"]", raised.source)):
        return "column"
    # Only the last line was kept: a short Chinese key is a class more often than anything else.
    if not raised.frames and re.fullmatch(r"['\"][\u4e00-\u9fff]{1,8}['\"]", raised.words):
        return "label"
    return ""
