"""What a prediction in several processes says over its pipes: one line of JSON a message, both directions here.

Not pickles: nothing that comes over a pipe is executed. Numbers come back as the same bits (JSON writes the shortest
text that reads back as the same float), and any text survives, lone surrogates included.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from fitune.values import Example, Prediction, Refusal, Source, Span

__all__ = ["STREAMED_EXAMPLES", "WorkerError", "chunks_of"]

STREAMED_EXAMPLES = 512
"""Examples of a stream that a CPU predicts together, whether one process works or several: the same passes, the same
bits. Enough to fill passes of like length (1,024 texts of CLUENER lengths, bert-base: 85.4 CPU-seconds in one piece,
85.5 to 86.3 in two), few enough that processes end at about the same time."""


class WorkerError(Exception):
    """A mistake in a worker process; its traceback is the cause."""


class _Elsewhere(Exception):
    """Prints as the traceback that it stands for."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])


def chunks_of(examples: Iterable[Example], size: int) -> Iterator[list[Example]]:
    """Lists of ``size`` examples; the last may be shorter."""
    coming = iter(examples)
    while chunk := list(islice(coming, size)):
        yield chunk


def pack(message: Any) -> bytes:
    """One line."""
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def pack_examples(examples: Sequence[Example]) -> bytes:
    """Gold stays behind: it plays no part in a prediction."""
    return pack(
        [[e.text, e.text_pair, *((e.source.file, e.source.line, e.source.row) if e.source else ())] for e in examples]
    )


def unpack_examples(line: bytes) -> list[Example]:
    return [
        Example(text, text_pair=pair, source=Source(*place) if place else None)
        for text, pair, *place in json.loads(line)
    ]


def pack_predictions(predictions: Sequence[Prediction]) -> bytes:
    """What the model found; the texts are with those who asked."""
    rows = [
        [
            None if p.spans is None else [[s.start, s.end, s.label, s.score] for s in p.spans],
            p.labels,
            p.scores,
        ]
        for p in predictions
    ]
    return pack({"found": rows})


def pack_error(error: Exception) -> bytes:
    if isinstance(error, Refusal):
        parts = {"found": error.found, "where": error.where, "next_step": error.next_step, "code": error.code}
        return pack({"refusal": parts, "exit_code": error.exit_code})
    told: dict[str, Any] = {"traceback": "".join(traceback.format_exception(error))}
    if isinstance(error, OSError) and isinstance(error.filename, str):
        return pack({**told, "system": [error.errno, error.strerror, error.filename]})
    first = str(error).strip().splitlines()
    return pack({**told, "error": f"{type(error).__name__}: {first[0]}" if first else type(error).__name__})


def unpack_predictions(line: bytes, examples: Sequence[Example]) -> list[Prediction]:
    """The predictions of ``examples``, or what the worker raised.

    Raises:
        Refusal: as the worker did, with the same exit code.
        OSError: a path refused there.
        WorkerError: anything else that was raised there.
    """
    message = json.loads(line)
    if "refusal" in message:
        refusal = Refusal(**message["refusal"])
        refusal.exit_code = message["exit_code"]
        raise refusal
    if "system" in message:
        raise OSError(*message["system"]) from _Elsewhere(message["traceback"])
    if "error" in message:
        raise WorkerError(message["error"]) from _Elsewhere(message["traceback"])
    return [
        Prediction(
            e.text,
            spans=None if spans is None else tuple(Span(*span) for span in spans),
            labels=None if labels is None else tuple(labels),
            scores=scores,
            text_pair=e.text_pair,
            source=e.source,
        )
        for e, (spans, labels, scores) in zip(examples, message["found"], strict=True)
    ]
