"""Files that give each label of a text a row of its own: joined when read, and parted again when written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from fitune.values import Example, Prediction


def join_label_rows(examples: list[Example], *, asked: bool) -> list[Example] | None:
    """One example per text where neighbouring rows repeat a text with other labels; None where the file does not."""
    joined: list[Example] = []
    labels: list[str] = []
    repeated = 0
    for example in examples:
        before = joined[-1] if joined else None
        new = example.labels or ()
        if before is not None and before.text == example.text and before.text_pair == example.text_pair:
            if labels and not set(new) & set(labels):
                repeated += 1
                labels.extend(new)
                joined[-1] = replace(before, labels=tuple(labels))
                continue
            if not asked:
                # The very same row twice: such a file repeats rows, it does not list labels.
                return None
        joined.append(example)
        labels = list(new)
    # A few neighbours with two labels are contradictions; where every fifth text has several, it is the file's way.
    return joined if repeated and (asked or (repeated >= 3 and repeated >= 0.2 * len(joined))) else None


def one_row_per_label(items: Iterable[Example | Prediction]) -> Iterator[Example | Prediction]:
    for item in items:
        labels = item.labels
        if labels is None or len(labels) < 2:
            yield item
        else:
            yield from (replace(item, labels=(label,)) for label in labels)
