"""Texts and classes: duplicates, contradictions, leaks, odd characters, odd distributions."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from fitune.data.checking.kinds import Tally, clip, finding, show
from fitune.data.rows import Rows, whereabouts
from fitune.messages import _
from fitune.values import Example, Finding, Fix

_FEW = 5
_MOST = 0.9
_ENOUGH_ROWS = 50
_LONG_SENTENCE = 1000
"""Characters."""
_MANY_ENDS = 10

Key = str | tuple[str, str]


def key(example: Example) -> Key:
    """Equal for equal texts; blanks at the ends and U+FEFF do not count. Most often the text itself: no copy."""
    return (
        _trimmed(example.text) if example.text_pair is None else (_trimmed(example.text), _trimmed(example.text_pair))
    )


def _trimmed(text: str) -> str:
    return (text.replace("\ufeff", "") if "\ufeff" in text else text).strip()


def gold(example: Example) -> object:
    """What two rows with one text have to agree on."""
    return frozenset(example.labels) if example.labels is not None else example.spans and frozenset(example.spans)


def leaked(examples: Sequence[Example], train: Sequence[Example]) -> list[bool]:
    """For each example: is its text also in ``train``? (Scores are given with and without these.)"""
    known = {key(example) for example in train}
    return [key(example) in known for example in examples]


def check_repeats(split: str, rows: Rows) -> tuple[list[Finding], dict[Key, int]]:
    """Duplicates and contradictions; and every different text with the index of its first row."""
    first: dict[Key, int] = {}
    repeated, contradicting = Tally(), Tally()
    contradicted: set[Key] = set()
    examples = rows.examples
    for index, example in enumerate(examples):
        text = key(example)
        before = first.setdefault(text, index)
        if before == index:
            continue
        earlier = examples[before]
        if (gold(earlier) is None) != (gold(example) is None):
            # A row without labels contradicts nothing.
            continue
        if gold(earlier) == gold(example):
            repeated.add(example, _("again: {text}", text=clip(example.text, 24)) + _where(earlier, example))
        elif text not in contradicted:
            contradicted.add(text)
            both = f"{_labels(earlier)} / {_labels(example)}"
            contradicting.add(example, f"{clip(example.text, 24)}: {both}{_where(earlier, example)}")
    found: list[Finding] = []
    file = file_of(rows)
    if repeated.count:
        found.append(finding("FT101", repeated.count, repeated.evidence, split=split, file=file))
    if contradicting.count:
        found.append(finding("FT102", contradicting.count, contradicting.evidence, split=split, file=file))
    return found, first


def _where(other: Example, than: Example) -> str:
    """Where ``other`` stands: the line alone when both are in one file."""
    if other.source is None:
        return ""
    if than.source is not None and than.source.file == other.source.file:
        if other.source.row is not None:
            return " " + _("(row {row})", row=other.source.row)
        return " " + _("(line {line})", line=other.source.line)
    return f" ({whereabouts(other.source)})"


def _labels(example: Example) -> str:
    if example.labels is not None:
        return ", ".join(example.labels)
    return ", ".join(f"{s.label} {example.text[s.start : s.end]}" for s in (example.spans or ())[:3]) or "-"


def file_of(rows: Rows) -> str:
    """The file's name, as the user gave it."""
    source = rows.examples[0].source if rows.examples else None
    return source.file if source else "FILE"


def check_leaks(texts: Mapping[str, dict[Key, int]], rows: Mapping[str, Rows]) -> list[Finding]:
    """Texts of the first split (train) in the others, and of each later one in those behind it."""
    found: list[Finding] = []
    names = list(texts)
    for number, other in enumerate(names):
        for split in names[number + 1 :]:
            shared = texts[split].keys() & texts[other].keys()
            if not shared:
                continue
            lines = sorted((texts[split][text], texts[other][text]) for text in shared)[:3]
            here, there = rows[split].examples, rows[other].examples
            evidence = [show(here[a], clip(here[a].text, 24) + _where(there[b], here[a])) for a, b in lines]
            found.append(finding("FT103", len(shared), evidence, split=split, other=other, texts=len(texts[split])))
    return found


def check_rows(split: str, rows: Rows, *, is_train: bool = False) -> list[Finding]:
    """Rows that could not be used, empty texts, odd characters, missing labels, what the reader noticed."""
    tallies = {code: Tally() for code in ("FT111", "FT115", "FT117", "FT118")}
    labelled = 0
    named = False
    for example in rows.examples:
        text = example.text
        if not text or text.isspace():
            tallies["FT111"].add(example, _("empty"))
        if not text.isascii():
            if "\ufeff" in text:
                tallies["FT115"].add(example)
            if "\ufffd" in text:
                tallies["FT118"].add(example)
        if example.spans is None and example.labels is None:
            tallies["FT117"].add(example)
        else:
            labelled += 1
            named = named or bool(example.spans or example.labels)
    file, counted = file_of(rows), len(rows.examples)
    found: list[Finding] = []
    if not labelled or (is_train and not named):
        tallies["FT117"] = Tally()
        evidence = [show(example) for example in rows.examples[:3]]
        format = rows.format
        told = format.evidence or "?"
        found.append(finding("FT131", counted, evidence, file=file, split=split, format=format.name, recognized=told))
    found += [
        finding(c, t.count, t.evidence, split=split, file=file, rows=counted) for c, t in tallies.items() if t.count
    ]
    if rows.skipped:
        evidence = [f"{whereabouts(skipped.source)}: {skipped.reason}" for skipped in rows.skipped[:3]]
        found.append(finding("FT114", len(rows.skipped), evidence, split=split))
    found.extend(check_boundaries(split, rows))
    if rows.stray_tags:
        begin, end = _("(begin)"), _("(end)")
        evidence = [
            f"{whereabouts(tag.source)}: {tag.before or begin} -> {tag.after or end}" for tag in rows.stray_tags[:3]
        ]
        found.append(finding("FT109", len(rows.stray_tags), evidence, split=split, file=file))
    for note in rows.notes:
        places = [whereabouts(source) for source in rows.noted.get(note, ())]
        found.append(finding("FT119", 1, places, split=split, note=note))
    return found


def check_boundaries(split: str, rows: Rows) -> list[Finding]:
    """Columns without blank lines: many sentences in a row of thousands of characters."""
    if rows.format.name != "columns" or not rows.examples:
        return []
    longest = max(rows.examples, key=lambda example: len(example.text))
    ends = sum(longest.text.count(mark) for mark in "。！？!?.")
    if (
        len(longest.text) < _LONG_SENTENCE
        or ends < _MANY_ENDS
        or len(longest.text) * 2 < sum(len(e.text) for e in rows.examples)
    ):
        return []
    return [finding("FT123", len(longest.text), [show(longest)], split=split)]


def missing_labels(split: str, examples: Sequence[Example], rows: int) -> list[Finding]:
    """The finding about rows that were left out of ``rows`` because they have no label; none where there are none."""
    tally = Tally()
    for example in examples:
        tally.add(example)
    return [finding("FT117", tally.count, tally.evidence, split=split, rows=rows)] if examples else []


def check_classes(split: str, rows: Rows, *, is_train: bool, more_elsewhere: bool = False) -> list[Finding]:
    """One-class files, rare classes, one class nearly alone, files sorted by class, label names that look alike.

    ``more_elsewhere``: another file has more classes.
    """
    counts: Counter[str] = Counter()
    changes, before, labelled = 0, None, 0
    for example in rows.examples:
        if example.labels is not None:
            counts.update(example.labels)
            labelled += 1
            changes += example.labels != before
            before = example.labels
    found = check_label_names(split, rows, counts)
    if not labelled:
        return found
    if len(counts) == 1 and not rows.multi_label:
        label = next(iter(counts))
        evidence = [show(example) for example in rows.examples[:1]]
        return [*found, _one_class(split, labelled, label, evidence, more_elsewhere=more_elsewhere)]
    if is_train:
        found.extend(check_rare(split, counts))
    label, most = counts.most_common(1)[0]
    if labelled >= _ENOUGH_ROWS and most / labelled >= _MOST:
        share = round(100 * most / labelled, 1)
        found.append(finding("FT112", most, split=split, share=share, labels=label))
    if labelled >= _ENOUGH_ROWS and changes == len(counts) and not rows.multi_label:
        found.append(finding("FT116", labelled, split=split))
    return found


def _one_class(split: str, labelled: int, label: str, evidence: list[str], *, more_elsewhere: bool) -> Finding:
    fixes: list[Fix] = []
    if more_elsewhere:
        text = _(
            "Another file has more classes: was one file cut that is sorted by class? Join them and name that alone."
        )
        fixes.append(Fix(safety="unsafe", text=text))
    return finding("FT107", labelled, evidence, split=split, labels=label, more_fixes=fixes)


def check_rare(split: str, counts: Counter[str]) -> list[Finding]:
    """Labels with less than five examples."""
    rare = sorted((n, label) for label, n in counts.items() if n < _FEW)
    if not rare:
        return []
    labels = ", ".join(f"{clip(label)} ({n})" for n, label in rare[:10])
    return [finding("FT113", len(rare), split=split, least=_FEW, labels=labels)]


def check_label_names(split: str, rows: Rows, counts: Counter[str]) -> list[Finding]:
    """Labels that differ only in case, width or blanks."""
    alike: dict[str, list[str]] = defaultdict(list)
    for label in counts:
        alike["".join(unicodedata.normalize("NFKC", label).casefold().split())].append(label)
    groups = [sorted(labels) for labels in alike.values() if len(labels) > 1]
    if not groups:
        return []
    names = "; ".join(" / ".join(repr(label) for label in labels) for labels in groups[:5])
    return [finding("FT121", sum(map(len, groups)), split=split, labels=names)]


def check_unseen(rows: Mapping[str, Rows]) -> list[Finding]:
    """Labels in dev or test that train (the first split) never has."""
    found: list[Finding] = []
    names = list(rows)
    known = labels_of(rows[names[0]]) if names else set[str]()
    if not known:
        return found
    for split in names[1:]:
        unseen: Counter[str] = Counter()
        tally = Tally()
        for example in rows[split].examples:
            new = {label for label in example.labels or () if label not in known}
            new |= {span.label for span in example.spans or () if span.label not in known}
            if new:
                unseen.update(new)
                tally.add(example, ", ".join(sorted(new)))
        if tally.count:
            labels = ", ".join(f"{clip(label)} ({n})" for label, n in unseen.most_common(10))
            found.append(finding("FT106", tally.count, tally.evidence, split=split, other=names[0], labels=labels))
    return found


def labels_of(rows: Rows) -> set[str]:
    """Every label that a row has."""
    labels: set[str] = set()
    for example in rows.examples:
        labels.update(example.labels or ())
        labels.update(span.label for span in example.spans or ())
    return labels
