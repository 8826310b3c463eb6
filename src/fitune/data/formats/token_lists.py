"""Token lists as JSON, as data sets on hubs have them: ``{"tokens": ["张", "三"], "ner_tags": ["B-PER", "I-PER"]}``.

Tags are names of any scheme that is recognised. Numbers instead of names say nothing without the list of names,
which lies outside the file: such a file is refused with what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from fitune.data.formats.base import Sample, TextFormat, not_expressible
from fitune.data.formats.beside import Beside
from fitune.data.formats.joining import cut_characters, join_tokens, own_tokens, recognize_joiner
from fitune.data.formats.json_objects import (
    Container,
    JsonObject,
    dump_objects,
    iterate_objects,
    object_rows,
    sample_objects,
)
from fitune.data.formats.records import container_name
from fitune.data.rows import Format, Tally
from fitune.data.schemes import Scheme, decode_tags, detect_scheme, flatten, parse_tag, spans_to_tags
from fitune.messages import _
from fitune.values import Example, Prediction, Refusal, Span

_TOKEN_KEYS = ("tokens", "words", "chars", "characters", "text", "sentence")
_TAG_KEYS = ("ner_tags", "tags", "labels", "label", "ner", "bio", "targets")


def recognize(sample: Sample) -> Format | None:
    found = sample_objects(sample)
    if found is None:
        return None
    container, objects = found
    keys = _keys(objects)
    if keys is None:
        return None
    token_key, tag_key = keys
    tag_rows = [cast(list[object], o[tag_key]) for o in objects if _lists(o, token_key, tag_key)]
    if all(isinstance(tag, int) for tags in tag_rows for tag in tags) and any(tag_rows):
        raise Refusal(
            _('the tags in "{key}" are numbers, and their names are not in the file', key=tag_key),
            where=f"{sample.path}:1",
            next_step=_("Write the names instead, such as B-PER; a data set's card lists them in order."),
            code="FT199",
        )
    sentences = [[tag for tag in tags if isinstance(tag, str) and parse_tag(tag)] for tags in tag_rows]
    detected = detect_scheme(sentences)
    tokens = [str(token) for o in objects if _lists(o, token_key, tag_key) for token in o[token_key]]
    details: dict[str, Any] = {"container": container, "tokens": token_key, "tags": tag_key}
    details.update(scheme=detected.scheme if detected else "BIO", mark=detected.separator if detected else "-")
    details["joiner"] = recognize_joiner(tokens)
    evidence = _(
        'JSON objects ({container}) with tokens in "{tokens}" and {scheme} tags in "{tags}"',
        container=container_name(container),
        tokens=token_key,
        scheme=details["scheme"],
        tags=tag_key,
    )
    return Format(name="token-lists", task="ner", details=details, evidence=evidence)


def parse(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[Example]:
    details = format.details
    token_key, tag_key = str(details["tokens"]), str(details["tags"])
    scheme: Scheme = details["scheme"]
    container: Container = details.get("container", "lines")
    for number, plain in iterate_objects(lines, container, tally):
        tokens = plain.get(token_key)
        if not _strings(tokens) or not tokens:
            tally.skip(number, _('"{key}" is missing or no list of texts', key=token_key))
            continue
        tokens = cast(list[str], tokens)
        if "" in tokens:
            tally.note(_("empty tokens, read as a space"), tokens.count(""))
            tokens = [token or " " for token in tokens]
        tags = plain.get(tag_key)
        if tags is None:
            yield Example(join_tokens(tokens, (), str(details["joiner"]))[0], source=tally.at(number))
            continue
        if not _strings(tags):
            tally.skip(number, _('"{key}" is missing or no list of texts', key=tag_key))
            continue
        tags = cast(list[str], tags)
        if len(tags) != len(tokens):
            tally.skip(number, _("{tokens} tokens but {tags} tags", tokens=len(tokens), tags=len(tags)))
            continue
        try:
            spans, invalid = decode_tags(tags, scheme)
        except ValueError:
            wrong = next(tag for tag in tags if parse_tag(tag) is None)
            tally.skip(number, _("{tag} is no tag of the scheme {scheme}", tag=repr(wrong[:40]), scheme=scheme))
            continue
        if invalid:
            tally.stray(number, tags, invalid, spans, scheme)
        text, spans = join_tokens(tokens, spans, str(details["joiner"]))
        yield Example(text, spans, source=tally.at(number))


def dump(
    items: Iterable[Example | Prediction], format: Format, beside: Beside[JsonObject] | None = None
) -> Iterator[str]:
    """The tokens of the row ``beside``; otherwise one token a character, or a word where a space joins them."""
    details = format.details
    scheme: Scheme = details["scheme"]

    def objects() -> Iterator[JsonObject]:
        for item in items:
            row = (beside.of(item) if beside else None) or {}
            tokens, spans = _tokens(item, details, row)
            plain: JsonObject = {**_fitting(row, details, len(tokens)), details["tokens"]: tokens}
            if item.spans is not None:
                plain[details["tags"]] = spans_to_tags(spans, len(tokens), scheme, separator=str(details["mark"]))
            yield plain

    return dump_objects(objects(), details.get("container", "lines"))


def _tokens(item: Example | Prediction, details: dict[str, Any], row: JsonObject) -> tuple[list[str], Sequence[Span]]:
    spans, joiner = flatten(item.spans or ())[0], str(details["joiner"])
    before = row.get(details["tokens"])
    if _strings(before):
        before = cast(list[str], before)
        own = own_tokens(item.text, before, spans, joiner)
        if own is not None:
            return before, own
    tokens, cut = cut_characters(item.text, spans, joiner)
    if "" in tokens:
        raise not_expressible(item, "token-lists", _("two separating blanks side by side"))
    return tokens, cut


def _fitting(row: JsonObject, details: dict[str, Any], tokens: int) -> JsonObject:
    """What is carried over: where the tokens are others now, no list of as many things as there were tokens."""
    before = row.get(details["tokens"])
    if not isinstance(before, list) or len(cast(list[object], before)) == tokens:
        return row
    was = len(cast(list[object], before))
    return {key: v for key, v in row.items() if not (isinstance(v, list) and len(cast(list[object], v)) == was)}


def _keys(objects: list[JsonObject]) -> tuple[str, str] | None:
    """(tokens, tags): the two lists of equal length that most objects have, the tags looking like tags."""
    for token_key in _TOKEN_KEYS:
        for tag_key in _TAG_KEYS:
            rows = [o for o in objects if _lists(o, token_key, tag_key)]
            if len(rows) * 2 <= len(objects):
                continue
            tags = [tag for o in rows for tag in cast(list[object], o[tag_key])]
            good = sum(isinstance(tag, int) or (isinstance(tag, str) and parse_tag(tag) is not None) for tag in tags)
            if tags and good >= 0.9 * len(tags):
                return token_key, tag_key
    return None


def _lists(plain: JsonObject, token_key: str, tag_key: str) -> bool:
    tokens, tags = plain.get(token_key), plain.get(tag_key)
    return (
        _strings(tokens) and isinstance(tags, list) and len(cast(list[object], tokens)) == len(cast(list[object], tags))
    )


def _strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast(list[object], value))


TOKEN_LISTS = TextFormat("token-lists", recognize, parse, dump, object_rows)
