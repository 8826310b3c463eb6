"""Dividing one file into training and development rows: stratified, seeded, with no text on both sides."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction

from fitune.messages import _, _n
from fitune.values import Example, Refusal


def text_key(example: Example) -> bytes:
    """16 bytes that are equal for equal texts (pairs: both texts), whitespace at the ends and U+FEFF aside."""
    pair = example.text_pair
    joined = _trim(example.text) if pair is None else f"{_trim(example.text)}\0{_trim(pair)}"
    return hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _trim(text: str) -> str:
    return text.replace("\ufeff", "").strip() if "\ufeff" in text else text.strip()


def stratum(example: Example) -> tuple[str, ...]:
    """What has to be spread evenly: the classes, or the entity labels that occur."""
    if example.labels is not None:
        return tuple(sorted(set(example.labels)))
    return tuple(sorted({span.label for span in example.spans or ()}))


def split_dev(examples: Sequence[Example], fraction: float, seed: int) -> tuple[list[Example], list[Example]]:
    """(train, dev) with about ``fraction`` of the rows in dev, each in the order of the file.

    Rows with one text (both texts, in pairs) stay together, on the side that the first of them falls on. Each
    combination of labels gets its share of dev, largest remainder first, then the total is met; a combination that
    occurs once stays in train while there are others to take. The draw is a hash of seed and text: the same on
    every machine, and independent of the order of the file.

    Raises Refusal when there are not two different texts.
    """
    groups: dict[bytes, list[int]] = defaultdict(list)
    for index, example in enumerate(examples):
        groups[text_key(example)].append(index)
    if len(groups) < 2:
        source = examples[0].source if examples else None
        raise Refusal(
            _n(
                "one row alone cannot be split into training and development rows",
                "{count} rows with one and the same text cannot be split into training and development rows",
                len(examples),
            ),
            where=source.file if source else "",
            next_step=_("Add rows with other texts, or give a development file with --dev."),
            code="FT120",
        )
    strata: dict[tuple[str, ...], list[bytes]] = defaultdict(list)
    for key, rows in groups.items():
        strata[stratum(examples[rows[0]])].append(key)
    salt = seed.to_bytes(8, "little", signed=False)
    for keys in strata.values():
        keys.sort(key=lambda key: hashlib.blake2b(key, key=salt, digest_size=16).digest())
    wanted = max(1, min(len(examples) - 1, round(Fraction(fraction).limit_denominator(10**6) * len(examples))))
    share = Fraction(wanted, len(examples))
    in_dev: set[int] = set()
    spare: list[tuple[Fraction, tuple[str, ...], bytes]] = []
    for labels in sorted(strata):
        keys = strata[labels]
        due = share * sum(len(groups[key]) for key in keys)
        taken = 0
        for position, key in enumerate(keys):
            size = len(groups[key])
            if taken + size <= due and position < len(keys) - 1:
                in_dev.update(groups[key])
                taken += size
            else:
                # Largest remainder first; the last text of a combination only when nothing else is left.
                last = Fraction(1 if position == len(keys) - 1 else 0)
                spare.append((last - (due - taken) / size, labels, key))
                taken += size
    train_groups = len(groups) - sum(1 for rows in groups.values() if rows[0] in in_dev)
    for _remainder, _labels, key in sorted(spare):
        rows = groups[key]
        if train_groups > 1 and (len(in_dev) + len(rows) <= wanted or not in_dev):
            in_dev.update(rows)
            train_groups -= 1
    train = [example for index, example in enumerate(examples) if index not in in_dev]
    return train, [example for index, example in enumerate(examples) if index in in_dev]


def label_counts(examples: Sequence[Example]) -> Counter[str]:
    """How often each class, or each entity label, occurs."""
    counts: Counter[str] = Counter()
    for example in examples:
        counts.update(example.labels or ())
        counts.update(span.label for span in example.spans or ())
    return counts
