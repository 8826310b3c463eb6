"""Text meets tokenizer: unknown tokens, dropped characters, entities that tokens cannot express, long texts."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fitune.data.alignment import drop_reason
from fitune.data.checking.kinds import Tally, clip, finding
from fitune.data.checking.statistics import Lengths, TokenStatistics
from fitune.data.coverage import coverage
from fitune.data.encoder import Encoder
from fitune.data.normalization import quote_map
from fitune.data.projection import Expressed, project
from fitune.data.rows import Rows
from fitune.data.schemes import flatten
from fitune.data.windows import Windows, split
from fitune.messages import _
from fitune.values import Example, Finding, Fix, Span

_CHUNK_CHARACTERS = 1 << 21
_UNKNOWN_SHARE = 0.005
"""FT210 from half a per cent on."""
_MAPPED = frozenset(map(chr, quote_map("\"'-.~・")))


@dataclass
class _Counts:
    tokens: int = 0
    unknown: int = 0
    characters: int = 0
    unknown_characters: int = 0
    dropped: Counter[str] = field(default_factory=Counter[str])
    spelled: Counter[str] = field(default_factory=Counter[str])
    entities: Counter[str] = field(default_factory=Counter[str])
    touched: Counter[str] = field(default_factory=Counter[str])
    label_tokens: Counter[str] = field(default_factory=Counter[str])
    label_unknown: Counter[str] = field(default_factory=Counter[str])
    inexact: Counter[str] = field(default_factory=Counter[str])
    windows: int = 0
    labelled: int = 0
    labelled_inside: int = 0
    lengths: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = field(default_factory=list)
    tallies: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))


def check_tokens(
    split_name: str, rows: Rows, encoder: Encoder, max_length: int | None
) -> tuple[TokenStatistics, list[Finding]]:
    """Statistics and findings of one split, in memory that does not grow with the file."""
    counts = _Counts()
    for chunk in _chunks(rows.examples):
        windows = split(chunk, encoder, max_length=max_length)
        _count_windows(counts, windows, chunk, encoder)
        _count_entities(counts, windows, chunk, encoder)
    statistics = _statistics(counts, encoder, max_length)
    return statistics, list(_findings(split_name, counts, statistics))


def _chunks(examples: Sequence[Example]) -> Iterator[list[Example]]:
    """Examples whose overlapping spans are flattened, some two million characters at a time."""
    chunk: list[Example] = []
    size = 0
    for example in examples:
        flat = flatten(example.spans)[0] if example.spans else example.spans
        chunk.append(example if flat == example.spans else replace(example, spans=flat))
        size += len(example.text) + len(example.text_pair or "")
        if size >= _CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _count_windows(counts: _Counts, windows: Windows, examples: Sequence[Example], encoder: Encoder) -> None:
    owned = np.flatnonzero(windows.owned)
    example = np.repeat(windows.example, np.diff(windows.bounds))[owned]
    unknown = owned[windows.ids[owned] == encoder.unk_id] if encoder.unk_id is not None else owned[:0]
    per_example = np.bincount(example, minlength=len(examples))
    counts.tokens += len(owned)
    counts.unknown += len(unknown)
    counts.lengths.append(per_example)
    counts.windows += len(windows)
    covered = coverage(windows, examples)
    counts.characters += covered.characters
    counts.labelled += covered.labelled - covered.labelled_dropped
    counts.labelled_inside += covered.labelled_in_windows
    counts.unknown_characters += int((windows.ends[unknown] - windows.starts[unknown]).sum())
    window = np.searchsorted(windows.bounds, unknown, side="right") - 1
    for token, w in zip(unknown.tolist(), window.tolist(), strict=True):
        row = examples[int(windows.example[w])]
        text = row.text_pair if windows.segments[token] else row.text
        piece = (text or "")[int(windows.starts[token]) : int(windows.ends[token])]
        counts.spelled[piece[:20]] += 1
        counts.tallies["FT210"].add(row, piece)
    for index, position in zip(windows.dropped_example.tolist(), windows.dropped_position.tolist(), strict=True):
        row = examples[index]
        at = position - len(row.text)
        character = row.text[position] if at < 0 else (row.text_pair or "")[at]
        reason = drop_reason(character)
        counts.dropped[reason] += 1
        if reason == "other":
            counts.tallies["FT213"].add(row, f"{character} (U+{ord(character):04X})")
            counts.spelled[f"\0{character}"] += 1
    several = np.flatnonzero(np.diff(windows.example_bounds) > 1)
    for index in several.tolist():
        counts.tallies["FT214"].add(examples[index], _("{tokens} tokens", tokens=int(per_example[index])))
    if examples[0].spans is None:
        of_unknown = np.bincount(windows.example[window], minlength=len(examples))
        for row, all_tokens, some in zip(examples, per_example.tolist(), of_unknown.tolist(), strict=True):
            for label in row.labels or ():
                counts.label_tokens[label] += all_tokens
                counts.label_unknown[label] += some


def _count_entities(counts: _Counts, windows: Windows, examples: Sequence[Example], encoder: Encoder) -> None:
    found = project(windows, examples)
    is_unknown = windows.ids == encoder.unk_id if encoder.unk_id is not None else np.zeros(len(windows.ids), np.bool_)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_unknown)])
    touched = before[found.last] - before[found.first]
    columns = (found.example, found.number, found.last - found.first, touched, found.expressed)
    for index, number, tokens, unknown, how in zip(*(c.tolist() for c in columns), strict=True):
        row = examples[index]
        span = _spans_of(row)[number]
        counts.entities[span.label] += 1
        counts.label_tokens[span.label] += tokens
        counts.label_unknown[span.label] += unknown
        if unknown:
            counts.touched[span.label] += 1
            counts.tallies["FT211"].add(row, f"{span.label} {clip(row.text[span.start : span.end])}")
        if how != Expressed.EXACT:
            counts.inexact[Expressed(how).name.lower()] += 1
            a, b = max(span.start - 4, 0), span.end + 4
            shown = f"{row.text[a : span.start]}[{row.text[span.start : span.end]}]{row.text[span.end : b]}"
            counts.tallies["FT212"].add(row, f"{span.label} {shown}")


def _spans_of(example: Example) -> tuple[Span, ...]:
    """Its spans, none where it is not labelled."""
    return example.spans or ()


def _statistics(counts: _Counts, encoder: Encoder, max_length: int | None) -> TokenStatistics:
    unknown = Counter({piece: n for piece, n in counts.spelled.items() if not piece.startswith("\0")})
    lengths = np.concatenate(counts.lengths) if counts.lengths else np.zeros(0, np.int64)
    return TokenStatistics(
        tokens=counts.tokens,
        unknown_tokens=counts.unknown,
        characters=counts.characters,
        unknown_characters=counts.unknown_characters,
        dropped_characters=dict(sorted(counts.dropped.items())),
        most_unknown=dict(unknown.most_common(20)),
        entities=counts.entities.total(),
        entities_with_unknown=dict(sorted(counts.touched.items())),
        unknown_share_by_label={
            label: round(counts.label_unknown[label] / n, 6) for label, n in sorted(counts.label_tokens.items()) if n
        },
        inexact_entities=dict(sorted(counts.inexact.items())),
        windows=counts.windows,
        max_length=encoder.max_length if max_length is None else max_length,
        long_texts=counts.tallies["FT214"].count,
        labelled_share_in_windows=counts.labelled_inside / counts.labelled if counts.labelled else 1.0,
        lengths=Lengths.of(lengths),
    )


def _findings(name: str, counts: _Counts, statistics: TokenStatistics) -> Iterator[Finding]:
    evidence = {code: tally.evidence for code, tally in counts.tallies.items()}
    if statistics.tokens and statistics.unknown_tokens / statistics.tokens >= _UNKNOWN_SHARE:
        share = round(100 * statistics.unknown_tokens / statistics.tokens, 2)
        shown = ", ".join(f"{clip(piece)} ({n})" for piece, n in list(statistics.most_unknown.items())[:8])
        fixes = _fixes(counts.spelled)
        yield finding(
            "FT210",
            statistics.unknown_tokens,
            evidence["FT210"],
            more_fixes=fixes,
            split=name,
            share=share,
            characters=shown,
        )
    if touched := counts.touched.total():
        share = round(100 * touched / max(statistics.entities, 1), 1)
        labels = ", ".join(f"{clip(label)} {n}" for label, n in counts.touched.most_common(10))
        yield finding("FT211", touched, evidence["FT211"], split=name, share=share, labels=labels)
    if inexact := counts.inexact.total():
        yield finding("FT212", inexact, evidence["FT212"], split=name)
    if other := counts.dropped["other"]:
        shown = " ".join(piece[1:] for piece in counts.spelled if piece.startswith("\0"))
        yield finding("FT213", other, evidence["FT213"], split=name, characters=clip(shown))
    if statistics.long_texts:
        yield finding(
            "FT214",
            statistics.long_texts,
            evidence["FT214"],
            split=name,
            tokens=statistics.max_length,
            windows=statistics.windows,
        )


def _fixes(spelled: Counter[str]) -> list[Fix]:
    """Settings that give some of the unknown tokens back."""
    total = sum(n for piece, n in spelled.items() if not piece.startswith("\0")) or 1
    capitals = sum(n for piece, n in spelled.items() if any(unicodedata.category(c) == "Lu" for c in piece))
    quotes = sum(n for piece, n in spelled.items() if any(c in _MAPPED for c in piece))
    fixes: list[Fix] = []
    if capitals / total > 0.1:
        fixes.append(
            Fix(
                safety="unsafe",
                text=_("{count} of them hold a capital letter: lower-case the input.", count=capitals),
                settings={"lowercase": True},
            )
        )
    if quotes / total > 0.1:
        fixes.append(
            Fix(
                safety="unsafe",
                text=_("{count} of them are curly quotes, dashes or ellipses: map them.", count=quotes),
                settings={"normalize_quotes": True},
            )
        )
    return fixes
