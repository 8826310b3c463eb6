"""Same-length maps: what may be done to a text before the tokenizer sees it, so that every offset stays true."""

from collections.abc import Container, Iterable
from functools import cache

# What a character may be replaced by, in the order of preference.
_SUBSTITUTES = {
    "“": '"',
    "”": '"',
    "„": '"',
    "‘": "'",
    "’": "'",
    "‚": "'",
    "—": "-─一",
    "–": "-",
    "―": "-─",
    "−": "-",
    "‑": "-",
    "…": "⋯.。",
    "‥": ".",
    "·": "・.",
    "•": "·・",
    "～": "~",
}


def quote_map(vocabulary: Container[str]) -> dict[int, str]:
    """For ``str.translate``: curly quotes, dashes and ellipses that ``vocabulary`` lacks -> a character that it has.

    bert-base-chinese lacks them: 0.8-1.0 % of the characters of Chinese news become [UNK] without this map.
    """
    found: dict[int, str] = {}
    for character, substitutes in _SUBSTITUTES.items():
        if character not in vocabulary:
            for substitute in substitutes:
                if substitute in vocabulary:
                    found[ord(character)] = substitute
                    break
    return found


@cache
def lowercase_map() -> dict[int, str]:
    """For ``str.translate``: lower-case, one character for one (U+0130, whose lower case is two, becomes ``i``)."""
    found: dict[int, str] = {}
    for point in range(0x1E944):  # the last letters with case are Adlam's
        character = chr(point)
        if (lower := character.lower()) != character:
            found[point] = lower[0]
    return found


def lacks_capitals(vocabulary: Iterable[str]) -> bool:
    """Does no piece (special ones such as [CLS] and <s> aside) hold an ASCII capital? Then input needs lower-casing."""
    return not any(
        any("A" <= character <= "Z" for character in piece)
        for piece in vocabulary
        if not (piece.startswith(("[", "<")) and piece.endswith(("]", ">")))
    )
