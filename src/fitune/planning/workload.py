"""What a Job feeds the model: the lengths of all windows, in the order in which training will see them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fitune.data import Rows, read, split, split_dev
from fitune.hf import EpochOrder, load_tokenizer, make_encoder
from fitune.messages import _
from fitune.microbatch import Budget
from fitune.microbatch import split as divide
from fitune.planning.models import folder_here
from fitune.values import Example, Job, Refusal

LONGEST_WINDOW = 512
_SPECIAL = 2  # [CLS] and [SEP]
Shape = tuple[int, int]
"""Windows, tokens of the longest."""


@dataclass(frozen=True, eq=False)
class Workload:
    """Windows of the training rows. W windows, E examples."""

    job: Job
    """With task, head, max_length and epochs chosen."""
    labels: tuple[str, ...]
    lengths_W: NDArray[np.int64]
    """Tokens of each window, special ones included."""
    example_starts_E1: NDArray[np.int64]
    dev_tokens: int
    basis: str
    """``tokenizer``, ``characters`` or ``fixed``: how the lengths are known."""

    @property
    def rows(self) -> int:
        return len(self.example_starts_E1) - 1

    @property
    def longest(self) -> int:
        return int(self.lengths_W.max())

    @property
    def tokens(self) -> int:
        return int(self.lengths_W.sum())

    def steps(self, epoch: int) -> Iterator[NDArray[np.int64]]:
        """Window lengths of every optimizer step of an epoch: the order is a pure function of (seed, epoch)."""
        order = EpochOrder(range(self.rows), self.job.seed)
        order.set_epoch(epoch)
        numbers = order.order()
        for first in range(0, self.rows, self.job.batch_size):
            examples = numbers[first : first + self.job.batch_size]
            yield np.concatenate(
                [self.lengths_W[self.example_starts_E1[e] : self.example_starts_E1[e + 1]] for e in examples]
            )


def shapes_of(lengths: NDArray[np.int64], budget: Budget) -> list[Shape]:
    """The micro-batches of one step, as ``microbatch`` divides it."""
    return [(len(piece.indices), piece.longest_tokens) for piece in divide(lengths.tolist(), budget)]


def fixed_workload(job: Job, labels: tuple[str, ...], length: int, rows: int) -> Workload:
    """Every row one window of ``length`` tokens: what padding to ``max_length`` makes of any data."""
    resolved = resolve_open(job, task=job.task or "ner", rows=rows, longest_input=length)
    starts = np.arange(rows + 1, dtype=np.int64)
    return Workload(resolved, labels, np.full(rows, length, np.int64), starts, 0, "fixed")


def read_workload(job: Job) -> Workload:
    """Read the job's files and measure its windows, with the model's tokenizer where it lies here.

    Raises:
        Refusal: no file, no labels.
    """
    rows = _read(job, job.train)
    task = job.task or rows.task
    train = _labelled(rows, task)
    if task is None or not train:
        raise Refusal(
            _("no row has a label"),
            where=job.train,
            next_step=_("Look at what was read with: fitune check {path}", path=job.train),
            code="FT131",
        )
    if job.dev is None:
        train, dev = (list(part) for part in split_dev(train, job.dev_fraction, job.seed))
    else:
        dev = _labelled(_read(job, job.dev), task)
    folder = folder_here(job.model, task)
    labels = tuple(dict.fromkeys([*rows.labels, *_names(train), *_names(dev)]))
    if folder is None:
        resolved = resolve_open(job, task=task, rows=len(rows.examples), longest_input=LONGEST_WINDOW)
        lengths, starts = _by_characters(train, resolved.max_length or LONGEST_WINDOW)
        dev_lengths, _starts = _by_characters(dev, resolved.max_length or LONGEST_WINDOW)
        return Workload(resolved, labels, lengths, starts, int(dev_lengths.sum()), "characters")
    encoder = make_encoder(load_tokenizer(folder, lowercase=job.lowercase))
    resolved = resolve_open(job, task=task, rows=len(rows.examples), longest_input=encoder.max_length)
    windows = split(train, encoder, max_length=resolved.max_length)
    dev_tokens = int(split(dev, encoder, max_length=resolved.max_length).lengths.sum()) if dev else 0
    starts = windows.example_bounds.astype(np.int64)
    return Workload(resolved, labels, windows.lengths.astype(np.int64), starts, dev_tokens, "tokenizer")


def resolve_open(job: Job, *, task: str, rows: int, longest_input: int) -> Job:
    """The open choices that memory and time depend on, by the rules of ``training.defaults`` (a test compares)."""
    ner = task == "ner"
    epochs = (6.0 if rows < 2_000 else 4.0) if ner else (3.0 if rows < 5_000 else 2.0)
    return job.model_copy(
        update={
            "task": task,
            "multi_label": bool(job.multi_label) and not ner,
            "head": (job.head or "crf") if ner else None,
            "max_length": job.max_length or min(LONGEST_WINDOW, longest_input),
            "epochs": job.epochs or epochs,
        }
    )


def _read(job: Job, path: str) -> Rows:
    return read(
        path,
        format=job.format,
        task=job.task,
        text_column=job.text_column,
        text_pair_column=job.text_pair_column,
        label_column=job.label_column,
        multi_label=job.multi_label,
    )


def _labelled(rows: Rows, task: str | None) -> list[Example]:
    """Rows with gold for the task, as training takes them."""
    kept = [e for e in rows.examples if (e.spans is not None if task == "ner" else e.labels is not None)]
    return kept if rows.multi_label or task == "ner" else [e for e in kept if e.labels]


def _names(examples: list[Example]) -> list[str]:
    return [name for e in examples for name in [s.label for s in e.spans or ()] + list(e.labels or ())]


def _by_characters(examples: list[Example], limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One token a character that is no blank: what Chinese vocabularies do, and more than they do with words."""
    lengths: list[int] = []
    starts = [0]
    for example in examples:
        text = example.text + (example.text_pair or "")
        special = _SPECIAL + (example.text_pair is not None)
        tokens, room = len(re.sub(r"\s", "", text)), limit - special
        overlap = room // 4
        while tokens > room:
            lengths.append(limit)
            tokens -= room - overlap
        lengths.append(tokens + special)
        starts.append(len(lengths))
    return np.array(lengths, np.int64), np.array(starts, np.int64)
