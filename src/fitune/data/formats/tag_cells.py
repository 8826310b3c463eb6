"""Two columns whose cells hold the tokens of a sentence and their tags, parted by spaces (as MSRA is often spread).

``我 在 北 京<TAB>O O B-LOC I-LOC``, with or without a header, tokens first or tags first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fitune.data.formats.base import Sample, TextFormat, not_expressible, one_line
from fitune.data.formats.joining import cut_words, join_tokens, recognize_joiner, same_mentions
from fitune.data.rows import Format, Tally
from fitune.data.schemes import Scheme, decode_tags, detect_scheme, flatten, parse_tag, spans_to_tags
from fitune.messages import _
from fitune.values import Example, Prediction, Source

_SEPARATORS = ("\t", ",", "|||")


def recognize(sample: Sample) -> Format | None:
    lines = [line for line in sample.lines if line and not line.isspace()]
    for separator in _SEPARATORS:
        rows = [cells for line in lines if len(cells := line.split(separator)) == 2]
        if len(rows) * 2 < len(lines) or not rows:
            continue
        for tag_column in (1, 0):
            pairs = [(row[1 - tag_column].split(), row[tag_column].split()) for row in rows]
            good = [(words, tags) for words, tags in pairs if len(words) == len(tags) and all(map(parse_tag, tags))]
            # A single tag a cell may as well be a class: at least one row must hold several.
            if len(good) >= max(1, 0.9 * (len(rows) - 1)) and any(len(tags) > 1 for _words, tags in good):
                return _format(separator, tag_column, rows, pairs, good)
    return None


def _format(
    separator: str,
    tag_column: int,
    rows: list[list[str]],
    pairs: list[tuple[list[str], list[str]]],
    good: list[tuple[list[str], list[str]]],
) -> Format:
    detected = detect_scheme(tags for _words, tags in good)
    header = None if all(map(parse_tag, pairs[0][1])) else rows[0]
    scheme, mark = (detected.scheme, detected.separator) if detected else ("BIO", "-")
    details: dict[str, Any] = {"separator": separator, "tag_column": tag_column, "header": header, "scheme": scheme}
    details.update(mark=mark, joiner=recognize_joiner([word for words, _tags in good for word in words]))
    return Format(
        name="tag-cells",
        task="ner",
        details=details,
        evidence=_(
            "two cells a line, separated by {separator}: tokens and as many {scheme} tags"
            " ({good} of {rows} lines), {header}",
            separator=repr(separator),
            scheme=scheme,
            good=len(good),
            rows=len(rows),
            header=_("with a header") if header else _("no header"),
        ),
    )


def parse(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[Example]:
    details = format.details
    separator, tag_column = str(details["separator"]), int(details["tag_column"])
    scheme: Scheme = details["scheme"]
    joiner = str(details.get("joiner", ""))
    header = details.get("header")
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            tally.structure["blank"] += 1
            continue
        cells = line.split(separator)
        if header is not None:
            header = None
            tally.structure["header"] += 1
            continue
        tally.rows += 1
        if len(cells) != 2:
            if not tally.labelled and len(cells) == 1:
                yield Example(join_tokens(line.split(), (), joiner)[0], source=Source(tally.file, number))
            else:
                tally.skip(number, _("the line has {found} cells, the file has {width}", found=len(cells), width=2))
            continue
        example = read_tagged(number, cells[1 - tag_column].split(), cells[tag_column].split(), scheme, joiner, tally)
        if example is not None:
            yield example


def read_tagged(
    number: int, words: list[str], tags: list[str], scheme: Scheme, joiner: str, tally: Tally
) -> Example | None:
    """The example of one sentence, or None when it was skipped."""
    if not words:
        tally.skip(number, _("the text is empty"))
        return None
    if len(words) != len(tags):
        tally.skip(number, _("{words} tokens but {tags} tags", words=len(words), tags=len(tags)))
        return None
    try:
        spans, invalid = decode_tags(tags, scheme)
    except ValueError:
        wrong = next(tag for tag in tags if parse_tag(tag) is None)
        tally.skip(number, _("{tag} is no tag of the scheme {scheme}", tag=repr(wrong[:40]), scheme=scheme))
        return None
    if invalid:
        tally.stray(number, tags, invalid, spans, scheme)
    text, spans = join_tokens(words, spans, joiner)
    return Example(text, spans, source=Source(tally.file, number))


def dump(items: Iterable[Example | Prediction], format: Format) -> Iterator[str]:
    """Tokens are characters, or words where a space joins them. Scores have no place in this format."""
    details = format.details
    if details.get("header"):
        yield str(details["separator"]).join(details["header"])
    for item in items:
        words, tags = tagged(item, format)
        cells = [" ".join(words), " ".join(tags)]
        if int(details["tag_column"]) == 0:
            cells.reverse()
        if str(details["separator"]) in cells[0] + cells[1]:
            raise not_expressible(item, "tag-cells", repr(details["separator"]))
        yield str(details["separator"]).join(cells)


def tagged(item: Example | Prediction, format: Format) -> tuple[list[str], list[str]]:
    """Tokens and tags of a text. Raises Refusal when it holds a blank that no token could carry."""
    details = format.details
    cut = cut_words(one_line(item, format.name), flatten(item.spans or ())[0], str(details.get("joiner", "")))
    if cut is None:
        raise not_expressible(item, format.name, _("a blank, which is also what separates its tokens"))
    words, spans = cut
    if isinstance(item, Example) and not same_mentions(item, words, spans):
        raise not_expressible(item, format.name, _("an entity that ends inside a word"))
    return words, spans_to_tags(spans, len(words), details["scheme"], separator=str(details.get("mark", "-")))


TAG_CELLS = TextFormat("tag-cells", recognize, parse, dump)
