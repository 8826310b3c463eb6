"""``check``: what is in the files, and what is wrong with them, in time linear in their size."""

from collections import Counter
from collections.abc import Mapping

from fitune.data.checking.entities import check_entities, unlabelled_repeats
from fitune.data.checking.kinds import KINDS
from fitune.data.checking.repairing import Change, repair, summary
from fitune.data.checking.statistics import Check, Lengths, SplitStatistics, TokenStatistics
from fitune.data.checking.texts import (
    Key,
    check_classes,
    check_leaks,
    check_repeats,
    check_rows,
    check_unseen,
    file_of,
    leaked,
    missing_labels,
)
from fitune.data.checking.tokens import check_tokens
from fitune.data.encoder import Encoder
from fitune.data.rows import Rows
from fitune.values import Finding

__all__ = [
    "KINDS",
    "Change",
    "Check",
    "Lengths",
    "SplitStatistics",
    "TokenStatistics",
    "check",
    "leaked",
    "missing_labels",
    "repair",
    "summary",
    "unlabelled_repeats",
]

_SEVERITIES = {"error": 0, "warning": 1, "note": 2}


def check(rows_by_split: Mapping[str, Rows], encoder: Encoder | None = None, *, max_length: int | None = None) -> Check:
    """Look at every row of every split. The first split is what is trained on; name the others as you like.

    With an ``encoder`` the texts are also looked at as the model sees them (windows of ``max_length`` tokens).
    Findings stand in the order of their severity, then of their code; the rows are not changed (see ``repair``).
    """
    findings: list[Finding] = []
    splits: dict[str, SplitStatistics] = {}
    texts: dict[str, dict[Key, int]] = {}
    for number, (name, rows) in enumerate(rows_by_split.items()):
        repeats, texts[name] = check_repeats(name, rows)
        findings.extend(repeats)
        findings.extend(check_rows(name, rows, is_train=number == 0))
        more = any(len(other.labels) > 1 and file_of(other) != file_of(rows) for other in rows_by_split.values())
        findings.extend(check_classes(name, rows, is_train=number == 0, more_elsewhere=more))
        findings.extend(check_entities(name, rows, is_train=number == 0))
        statistics = _statistics(rows, len(texts[name]))
        if encoder is not None:
            tokens, found = check_tokens(name, rows, encoder, max_length)
            findings.extend(found)
            statistics = statistics.model_copy(update={"tokens": tokens})
        splits[name] = statistics
    findings.extend(check_leaks(texts, rows_by_split))
    findings.extend(check_unseen(rows_by_split))
    first = next(iter(rows_by_split.values()), None)
    return Check(
        task=first.task if first else None,
        multi_label=bool(first and first.multi_label),
        splits=splits,
        findings=tuple(sorted(findings, key=lambda f: (_SEVERITIES[f.severity], f.code))),
    )


def _statistics(rows: Rows, different_texts: int) -> SplitStatistics:
    labels: Counter[str] = Counter()
    lengths: list[int] = []
    entities = labelled = 0
    for example in rows.examples:
        labels.update(example.labels or ())
        if example.spans:
            labels.update([span.label for span in example.spans])
            entities += len(example.spans)
        labelled += example.labels is not None or example.spans is not None
        lengths.append(len(example.text) + len(example.text_pair or ""))
    return SplitStatistics(
        file=file_of(rows),
        format=rows.format.name,
        encoding=rows.format.encoding,
        recognized=rows.format.evidence,
        rows=len(rows.examples),
        skipped=len(rows.skipped),
        characters=sum(lengths),
        labels=dict(labels.most_common()),
        entities=entities,
        labelled_rows=labelled,
        different_texts=different_texts,
        duplicates=len(rows.examples) - different_texts,
        lengths=Lengths.of(lengths),
    )
