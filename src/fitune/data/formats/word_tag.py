"""Words with their tags behind a slash: ``中国/ns 人民/n``, the style of the People's Daily corpus; tag names are kept.

Entities are the words tagged ``nr``, ``ns``, ``nt`` (person, place, organisation), or, when the file has none of
these, every word whose tag is not ``O``; ``--format word-tag,entities=nr|nz`` names others. The corpus of January 1998
gives surname and given name a word each (``江/nr 泽民/nr``): two neighbouring ``nr`` words are one person when the
first has at most two characters and both together at most four. That rule is used when the file shows the habit, and
``merge=yes`` or ``merge=no`` decides by hand. Compounds in brackets (``[中央/n 电视台/n]nt``) count as one entity.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from fitune.data.formats.base import Sample, TextFormat, not_expressible, one_line
from fitune.data.formats.joining import cut_words, join_tokens, same_mentions
from fitune.data.rows import Format, Tally
from fitune.data.schemes import flatten
from fitune.messages import _
from fitune.values import Example, Prediction, Source, Span

_TOKEN = re.compile(r"(\[?)(\S+)/([^\W\d_][\w.\-]*)(?:\](/?[A-Za-z]\w*))?\Z")
_PARAGRAPH_ID = re.compile(r"\d{8}-\d{2}-\d{3}-\d{3}/m\Z")
_ENTITY_TAGS = ("nr", "ns", "nt")
_PERSON = "nr"
_PLAIN = "x"


def recognize(sample: Sample) -> Format | None:
    tokens = [token for line in sample.lines[:2000] for token in line.split()]
    matches = [match for token in tokens if (match := _TOKEN.match(token))]
    if not tokens or len(matches) < 0.9 * len(tokens):
        return None
    tags = Counter(match[3] for match in matches)
    if sum(count for tag, count in tags.items() if tag.isascii()) * 2 < tags.total():
        return None
    # A path or a date such as a/b matches too; a tag set is small and comes again.
    if len(tags) > 150 or (len(tokens) > 20 and len(tags) > 0.5 * len(tokens)):
        return None
    tags.update(match[4].lstrip("/") for match in matches if match[4])
    known = [tag for tag in _ENTITY_TAGS if tags[tag]]
    entities = known or sorted(tag for tag in tags if tag not in ("O", "o"))
    pairs = sum(a[3] == b[3] == _PERSON and len(a[2]) == 1 for a, b in pairwise(matches))
    merge = pairs >= max(1, 0.1 * tags[_PERSON])
    return Format(
        name="word-tag",
        task="ner",
        details={"entities": entities, "merge": merge},
        evidence=_(
            "words with tags behind a slash; entities: {entities}{merge}",
            entities=", ".join(entities),
            merge=_("; surname and given name are joined") if merge else "",
        ),
    )


def parse(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[Example]:
    entities, merge = _options(format.details)
    for number, line in enumerate(lines, 1):
        tokens = line.split()
        if tokens and _PARAGRAPH_ID.match(tokens[0]):
            tally.note(_("paragraph numbers taken off"))
            tokens = tokens[1:]
        if not tokens:
            tally.structure["blank"] += 1
            continue
        tally.rows += 1
        words: list[str] = []
        spans: list[Span] = []
        opened = -1
        wrong = ""
        for token in tokens:
            match = _TOKEN.match(token)
            if match is None:
                wrong = token
                break
            opening, word, tag, closing = match.groups()
            if opening and "]" not in line:
                # A bracket that nothing closes is a character of the word.
                opening, word = "", "[" + word
            if opening and opened < 0:
                opened = len(words)
            if tag in entities:
                spans.append(Span(len(words), len(words) + 1, tag))
            words.append(word)
            if closing and opened >= 0:
                outer = closing.lstrip("/")
                if outer in entities:
                    spans = [s for s in spans if s.start < opened]
                    spans.append(Span(opened, len(words), outer))
                opened = -1
        if wrong:
            tally.skip(number, _("{token} is no word with a tag behind a slash", token=repr(wrong[:40])))
            continue
        found = tuple(_merged(words, spans) if merge else spans)
        text, found = join_tokens(words, found, "")
        yield Example(text, found, source=Source(tally.file, number))


def dump(items: Iterable[Example | Prediction], format: Format) -> Iterator[str]:
    """What is no entity is written character by character with the tag ``x``: the words are not known any more."""
    entities, merge = _options(format.details)
    for item in items:
        spans = flatten(item.spans or ())[0]
        cut = cut_words(one_line(item, "word-tag"), spans, "")
        if cut is None:
            raise not_expressible(item, "word-tag", _("a blank, which is also what separates its tokens"))
        words, moved = cut
        if isinstance(item, Example) and not same_mentions(item, words, moved):
            raise not_expressible(item, "word-tag", _("an entity that ends inside a word"))
        if "]" in item.text and any(word[0] == "[" and len(word) > 1 for word in words):
            raise not_expressible(item, "word-tag", _("brackets, which mark compounds"))
        written: list[str] = []
        done = 0
        for span in moved:
            if span.label not in entities:
                raise not_expressible(item, "word-tag", _("the tag {tag}", tag=repr(span.label)))
            written.extend(f"{word}/{_PLAIN}" for word in words[done : span.start])
            mention = "".join(words[span.start : span.end])
            if merge and span.label == _PERSON and 2 <= len(mention) <= 4:
                written.append(f"{mention[0]}/{_PERSON}")
                mention = mention[1:]
            written.append(f"{mention}/{span.label}")
            done = span.end
        written.extend(f"{word}/{_PLAIN}" for word in words[done:])
        yield " ".join(written)


def _options(details: dict[str, Any]) -> tuple[frozenset[str], bool]:
    entities, merge = details["entities"], details.get("merge", False)
    names = entities.split("|") if isinstance(entities, str) else entities
    return frozenset(names), merge is True or str(merge).lower() in ("yes", "true", "1")


def _merged(words: list[str], spans: list[Span]) -> list[Span]:
    """Surname and given name as one span."""
    merged: list[Span] = []
    free = False
    for span in spans:
        before = merged[-1] if merged else None
        if (
            free
            and before is not None
            and span.label == before.label == _PERSON
            and span.start == before.end
            and span.end - span.start == before.end - before.start == 1
            and len(words[before.start]) <= 2
            and len(words[before.start]) + len(words[span.start]) <= 4
        ):
            merged[-1] = Span(before.start, span.end, _PERSON)
            free = False
        else:
            merged.append(span)
            free = True
    return merged


WORD_TAG = TextFormat("word-tag", recognize, parse, dump)
