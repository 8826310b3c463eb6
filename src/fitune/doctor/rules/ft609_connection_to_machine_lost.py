"""The connection was lost, and training went with it

## What it says

`Hangup`, `SIGHUP`, `client_loop: send disconnect: Broken pipe`, `Connection to ... closed by remote host`, or
the log simply ends.

## Why

A process started in a terminal ends with it (SIGHUP); a notebook's output stops when its page is closed; rented
boxes stop when money or time is up.

## How to know

No traceback, and the log ends in the middle of a step.

## How to fix

Type the same `fitune train` command again: it goes on from the last step, and `fitune attach` follows it. For a
script use `nohup ... &`, `tmux` or `setsid`, and pass `resume_from_checkpoint`.

## How safe

Safe: the steps since the last checkpoint are repeated.

## Sources

hiyouga/LlamaFactory#721 ; https://man7.org/linux/man-pages/man1/nohup.1.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
FOLLOWS = {"FT610"}
SAFETY = "safe"
PATTERNS = (
    r"^\s*(?:Hangup|挂起|挂断)\s*$|\bSIGHUP\b|Signal 1 \(SIGHUP\)",
    r"client_loop: send disconnect|packet_write_wait|Connection to \S+ closed by remote host"
    r"|Connection to \S+ closed\.\s*$|Network error: Software caused connection abort"
    r"|Connection reset by \S+ port \d+",
    r"WebSocket (?:connection|is) (?:closed|lost)|Connection to (?:the )?kernel (?:was )?lost|训练中途断开连接",
)


def read(log: Log) -> Iterator[Symptom]:
    """The connection was lost, and training went with it, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.9)
