"""Reading a Job's files: rows of every split, a development split where none is given, and what each came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from fitune.data import Rows, missing_labels, read, split_dev
from fitune.messages import _, _n
from fitune.runs import DataFile, Run
from fitune.values import Example, Finding, Job, Refusal


@dataclass
class Splits:
    """Labelled rows by split."""

    train: list[Example]
    dev: list[Example]
    test: list[Example] | None
    rows: Rows
    """The training file, whole."""
    labels: tuple[str, ...]
    """Of training and development rows."""
    dev_is_split_off: bool
    rows_by_split: dict[str, Rows] = field(default_factory=dict[str, Rows])
    """What ``data.check`` looks at: every file, split off rows apart."""
    files: list[DataFile] = field(default_factory=list[DataFile])
    findings: list[Finding] = field(default_factory=list[Finding])
    """About rows that were left out because they have no label: ``data.check`` does not see these."""


def read_splits(job: Job) -> Splits:
    """Read train, dev and test; split dev off by (dev_fraction, seed) where there is none.

    Raises:
        Refusal: a file cannot be read, or has no labelled row, or the training rows have nothing to tell apart
            (FT130, FT131); labels in dev or test that training rows lack are no reason (they are counted as errors of
            the model).
    """
    rows = _read(job, job.train, None)
    task = job.task or rows.task
    examples, unlabelled = _labelled(rows, task)
    splits = Splits(examples, [], None, rows, (), job.dev is None)
    if not examples:
        raise Refusal(
            _("no row has a label"),
            where=job.train,
            next_step=_("Look at what was read with: fitune check {path}", path=job.train),
            code="FT131",
        )
    refuse_one_class(job, rows, examples)
    splits.findings += missing_labels("train", unlabelled, len(rows.examples))
    splits.files.append(_data_file("train", job.train, rows, len(examples)))
    splits.rows_by_split["train"] = replace(rows, examples=examples)
    if job.dev is None:
        splits.train, splits.dev = (list(part) for part in split_dev(examples, job.dev_fraction, job.seed))
        if not splits.dev or not splits.train:
            raise Refusal(
                _n(
                    "one row is too few to split a development set off",
                    "{count} rows are too few to split a development set off",
                    len(examples),
                ),
                where=job.train,
                next_step=_("Give a file with --dev, or a larger dev_fraction."),
                code="FT132",
            )
        splits.rows_by_split["train"] = replace(rows, examples=splits.train)
        splits.rows_by_split["dev"] = replace(
            rows, examples=splits.dev, skipped=[], notes=[], rows_in_file=len(splits.dev)
        )
        file = splits.files[0]
        splits.files = [file.model_copy(update={"rows": len(splits.train)})]
        splits.files.append(file.model_copy(update={"split": "dev", "rows": len(splits.dev), "split_off": True}))
    else:
        splits.dev = _other(splits, job, "dev", job.dev, task)
    if job.test is not None:
        splits.test = _other(splits, job, "test", job.test, task)
    known = dict.fromkeys(rows.labels)
    for example in (*splits.train, *splits.dev, *(splits.test or ())):
        known.update(dict.fromkeys([span.label for span in example.spans or ()] + list(example.labels or ())))
    splits.labels = tuple(known)
    return splits


def _read(job: Job, path: str, task: Literal["ner", "classification"] | None) -> Rows:
    return read(
        path,
        format=job.format,
        task=job.task or task,
        text_column=job.text_column,
        text_pair_column=job.text_pair_column,
        label_column=job.label_column,
        multi_label=job.multi_label,
    )


def _other(
    splits: Splits, job: Job, split: Literal["dev", "test"], path: str, task: Literal["ner", "classification"] | None
) -> list[Example]:
    rows = _read(job, path, task)
    examples, unlabelled = _labelled(rows, task)
    if not examples:
        raise Refusal(
            _("no row has a label, so it cannot be scored"),
            where=path,
            next_step=_("Leave it out here; after training: fitune predict RUN {path}", path=path),
            code="FT131",
        )
    splits.findings += missing_labels(split, unlabelled, len(rows.examples))
    splits.files.append(_data_file(split, path, rows, len(examples)))
    splits.rows_by_split[split] = replace(rows, examples=examples)
    return examples


def refuse_one_class(job: Job, rows: Rows, examples: Sequence[Example]) -> None:
    """Raise a Refusal where the training rows name no label, or one class alone that all of them have."""
    labels = {label for e in examples for label in (*(e.labels or ()), *(span.label for span in e.spans or ()))}
    if not labels:
        raise Refusal(
            _("no row has a label"),
            where=job.train,
            next_step=_("Look at what was read with: fitune check {path}", path=job.train),
            code="FT131",
        )
    multi_label = rows.multi_label if job.multi_label is None else job.multi_label
    if examples[0].labels is not None and len(labels) < 2 and not multi_label:
        raise Refusal(
            _("there is one class only: {label}", label=next(iter(labels))),
            where=job.train,
            next_step=_("A classifier needs rows of at least two classes."),
            code="FT130",
        )


def _labelled(rows: Rows, task: str | None) -> tuple[list[Example], list[Example]]:
    """Rows with gold for the task, and those that have none."""
    kept: list[Example] = []
    bare: list[Example] = []
    for example in rows.examples:
        gold = example.spans if task == "ner" else example.labels
        # Of several classes a row may have none; of one class each it must have one.
        empty = task != "ner" and not gold and not rows.multi_label
        (bare if gold is None or empty else kept).append(example)
    return kept, bare


def _data_file(split: Literal["train", "dev", "test"], path: str, rows: Rows, count: int) -> DataFile:
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return DataFile(
        split=split,
        path=path,
        rows=count,
        sha256=digest.hexdigest(),
        format=rows.format.name,
        encoding=rows.format.encoding,
    )


def keep_split(run: Run, splits: Splits, seed: int) -> None:
    """Write ``split.json``: which rows were split off, by ``file:line``, so that the split can be seen and repeated."""
    if splits.dev_is_split_off:
        plain = {"seed": seed, "dev": [str(example.source) for example in splits.dev]}
        (run.directory / "split.json").write_text(json.dumps(plain, ensure_ascii=False, indent=1), encoding="utf-8")
