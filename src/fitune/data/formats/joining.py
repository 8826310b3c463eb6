"""Tokens <-> text for formats that store tokens: nothing between Chinese characters, a space between words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fitune.data.schemes import flatten
from fitune.values import Example, Span

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u3040-\u30ff\uac00-\ud7af]")
_ASCII_END = re.compile(r"[!-~]*[A-Za-z]\Z")
_ASCII_START = re.compile(r"[A-Za-z][!-~]*")


def has_han(token: str) -> bool:
    """Is there a Chinese, Japanese or Korean character in it?"""
    return _HAN.search(token) is not None


def recognize_joiner(tokens: list[str]) -> str:
    """A space between words of alphabetic scripts, nothing between characters or Chinese words."""
    han = sum(1 for token in tokens if _HAN.search(token))
    words = sum(1 for token in tokens if len(token) > 1 and token.isalpha() and not _HAN.search(token))
    return " " if words > len(tokens) * 0.2 and words > han else ""


def join_tokens(tokens: list[str], spans: tuple[Span, ...], joiner: str) -> tuple[str, tuple[Span, ...]]:
    """The text of a sentence and its spans in characters, from tokens and spans in tokens.

    Without a joiner a space still goes between two neighbouring Latin words (``Steve`` ``Jobs``).
    """
    text = "".join(tokens)
    if not joiner and len(text) == len(tokens):
        return text, spans
    starts: list[int] = []
    pieces: list[str] = []
    length = 0
    before = ""
    for token in tokens:
        glue = joiner or (" " if _both_latin_words(before, token) else "")
        if glue and pieces:
            pieces.append(glue)
            length += len(glue)
        starts.append(length)
        pieces.append(token)
        length += len(token)
        before = token
    moved = tuple(Span(starts[s.start], starts[s.end - 1] + len(tokens[s.end - 1]), s.label) for s in spans)
    return "".join(pieces), moved


def cut_characters(text: str, spans: Iterable[Span], joiner: str) -> tuple[list[str], list[Span]]:
    """Tokens of a text and its spans in tokens: characters, or words when a space joins them (spans are widened)."""
    if not joiner:
        return list(text), list(spans)
    return _owned(text.split(joiner), len(joiner), spans)


def own_tokens(text: str, tokens: Sequence[str], spans: Iterable[Span], joiner: str) -> list[Span] | None:
    """Spans of a text in the tokens that it was read from: what belongs to each token then still does.

    None where the text is no longer theirs, or a span ends inside a token.
    """
    # As readers do: an empty token is a space.
    read = [token or " " for token in tokens]
    joined, placed = join_tokens(read, tuple(Span(i, i + 1, "") for i in range(len(read))), joiner)
    if joined != text:
        return None
    starts = {span.start: index for index, span in enumerate(placed)}
    ends = {span.end: index + 1 for index, span in enumerate(placed)}
    own: list[Span] = []
    for span in spans:
        if span.start not in starts or span.end not in ends:
            return None
        own.append(Span(starts[span.start], ends[span.end], span.label))
    return own


def cut_words(text: str, spans: Iterable[Span], joiner: str) -> tuple[list[str], list[Span]] | None:
    """As ``cut_characters``, but no token is blank: words that ``join_tokens`` parts by a space stay whole.

    None when a blank stands elsewhere in the text.
    """
    if joiner:
        tokens = text.split(joiner)
        if any(not token or token.isspace() or len(token.split()) > 1 for token in tokens):
            return None
        return _owned(tokens, len(joiner), spans)
    tokens: list[str] = []
    owner: list[int] = []
    parts = text.split(" ")
    for index, part in enumerate(parts):
        if index:
            owner.append(len(tokens) - 1)
        left = _ASCII_START.match(part) if index else None
        right = _ASCII_END.search(part) if index + 1 < len(parts) else None
        if (index and (left is None or len(left[0]) < 2)) or (
            index + 1 < len(parts) and (right is None or len(right[0]) < 2)
        ):
            return None
        head = left.end() if left else 0
        tail = max(head, right.start()) if right else len(part)
        for piece in (part[:head], *part[head:tail], part[tail:]):
            if piece:
                if piece.isspace():
                    return None
                owner.extend([len(tokens)] * len(piece))
                tokens.append(piece)
    return tokens, _widen(owner, spans)


def same_mentions(item: Example, words: list[str], spans: list[Span]) -> bool:
    """Do spans in tokens still cover what the example's spans cover? Gold is never widened in silence."""
    told = [item.text[span.start : span.end].replace(" ", "") for span in flatten(item.spans or ())[0]]
    return told == ["".join(words[span.start : span.end]).replace(" ", "") for span in spans]


def _owned(tokens: list[str], gap: int, spans: Iterable[Span]) -> tuple[list[str], list[Span]]:
    owner: list[int] = []
    for index, token in enumerate(tokens):
        owner.extend([index] * (len(token) + gap))
    return tokens, _widen(owner, spans)


def _widen(owner: list[int], spans: Iterable[Span]) -> list[Span]:
    """Spans in tokens, each widened to whole tokens; one that would then overlap the span before it is left out."""
    widened: list[Span] = []
    for span in spans:
        start, end = owner[span.start], owner[span.end - 1] + 1
        if not widened or start >= widened[-1].end:
            widened.append(Span(start, end, span.label))
    return widened


def _both_latin_words(before: str, token: str) -> bool:
    if len(before) < 2 or len(token) < 2:
        return False
    return before.isascii() and token.isascii() and before[-1].isalpha() and token[0].isalpha()
