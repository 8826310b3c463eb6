"""JSON objects in a text file, with the line at which each begins: one a line, one after another, or one array."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from fitune.data.formats.base import Sample
from fitune.data.formats.beside import Place, place_of
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Refusal

Container = Literal["lines", "concatenated", "array"]
JsonObject = dict[str, Any]

_decode = json.JSONDecoder().raw_decode
_SPACE = " \t\n\r\ufeff\u3000\xa0"


def sample_objects(sample: Sample, limit: int = 500) -> tuple[Container, list[JsonObject]] | None:
    """The first objects of a file and how they stand in it; None when it does not begin with a JSON object."""
    start = _skip_space(sample.text, 0)
    first = sample.text[start : start + 1]
    if first == "[":
        inside = _skip_space(sample.text, start + 1)
        if sample.text[inside : inside + 1] not in ("{", "]"):
            return None
        objects = _take(sample.text, inside, limit, separators=",")
        return ("array", objects) if objects or sample.text[inside : inside + 1] == "]" else None
    if first != "{":
        return None
    by_line: list[JsonObject] = []
    bad = 0
    for line in sample.lines[:limit]:
        if line and not line.isspace():
            value = _value(line)
            if isinstance(value, dict):
                by_line.append(value)
            else:
                bad += 1
    # A few broken lines among good ones are still JSON lines.
    if by_line and bad * 2 <= len(by_line):
        return "lines", by_line
    objects = _take(sample.text, start, limit, separators="")
    return ("concatenated", objects) if objects else None


def iterate_objects(lines: Iterable[str], container: Container, tally: Tally) -> Iterator[tuple[int, JsonObject]]:
    """(line number, object) for each object; what is no object is skipped and counted."""
    if container == "lines":
        yield from _by_line(lines, tally)
    else:
        yield from _whole("\n".join(lines), tally, array=container == "array")


def object_rows(
    lines: Iterable[str], format: Format, container: Container = "lines"
) -> Iterator[tuple[Place, JsonObject]]:
    """(place, object) for each object of a file; ``container``: where the format does not say it."""
    tally = Tally("")
    for number, plain in iterate_objects(lines, format.details.get("container", container), tally):
        yield place_of(tally.at(number)), plain


def dump_objects(objects: Iterable[JsonObject], container: Container) -> Iterator[str]:
    """Lines that ``iterate_objects`` reads back."""
    if container == "lines":
        for plain in objects:
            yield json.dumps(plain, ensure_ascii=False)
    elif container == "concatenated":
        for plain in objects:
            yield json.dumps(plain, ensure_ascii=False, indent=2)
    else:
        before = "["
        for plain in objects:
            yield before + json.dumps(plain, ensure_ascii=False)
            before = ","
        yield "]" if before == "," else "[]"


def _by_line(lines: Iterable[str], tally: Tally) -> Iterator[tuple[int, JsonObject]]:
    for number, line in enumerate(lines, 1):
        try:
            value, end = _decode(line)
            if end != len(line) and not line[end:].isspace():
                value = _value(line)
        except (ValueError, RecursionError):
            if not line.strip(_SPACE):
                tally.structure["blank"] += 1
                continue
            value = _value(line)
        tally.rows += 1
        if isinstance(value, dict):
            yield number, value
        else:
            tally.skip(number, value if isinstance(value, str) else _("this line is no JSON object"))


def _value(line: str) -> JsonObject | str:
    """The object in a line, or why there is none."""
    text = line.strip(_SPACE).rstrip(",")
    try:
        value = json.loads(text)
    except RecursionError:
        return _("this JSON is nested too deeply")
    except ValueError as error:
        return json_problem(error)
    return value if isinstance(value, dict) else _("this line is no JSON object")


def json_problem(error: ValueError) -> str:
    """A JSON error as a text for people."""
    if isinstance(error, json.JSONDecodeError):
        return _("not valid JSON at column {column}: {problem}", column=error.colno, problem=error.msg)
    return _("not valid JSON: {problem}", problem=str(error))


def _whole(text: str, tally: Tally, *, array: bool) -> Iterator[tuple[int, JsonObject]]:
    """Objects one after another. After a broken one, reading goes on at the next line that begins with a brace."""
    separators = _SPACE + (",[]" if array else ",")
    position = _skip(text, 0, separators)
    line, row = 1 + text.count("\n", 0, position), 0
    shared = False
    while position < len(text):
        tally.rows += 1
        row += 1
        try:
            value, end = _decode(text, position)
        except RecursionError:
            value, end = _("this JSON is nested too deeply"), _resume(text, position)
        except json.JSONDecodeError as error:
            # An error's own columns would cost a count from the start of the text each time.
            value, end = _("not valid JSON: {problem}", problem=error.msg), _resume(text, position)
        except ValueError as error:
            value, end = json_problem(error), _resume(text, position)
        following = _skip(text, end, separators)
        passed = text.count("\n", position, following)
        shares = passed == 0 and following < len(text)
        # A line that holds several rows does not tell which one is meant.
        tally.row = row if shared or shares else None
        if isinstance(value, dict):
            yield line, value
        else:
            tally.skip(line, value if isinstance(value, str) else _("this is no JSON object"))
        position, line, shared = following, line + passed, shares
    tally.row = None


def _resume(text: str, position: int) -> int:
    found = text.find("\n{", position + 1)
    return len(text) if found < 0 else found + 1


def _take(text: str, position: int, limit: int, *, separators: str) -> list[JsonObject]:
    found: list[JsonObject] = []
    while len(found) < limit:
        position = _skip(text, position, _SPACE + separators)
        if position >= len(text) or text[position] != "{":
            break
        try:
            value, position = _decode(text, position)
        except (ValueError, RecursionError):
            break
        found.append(value)
    return found


def _skip_space(text: str, position: int) -> int:
    return _skip(text, position, _SPACE)


def _skip(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position


def json_without_text(sample: Sample) -> Refusal | None:
    """JSON that no JSON format could read is not to be taken for a table or for plain text."""
    found = sample_objects(sample)
    if found is not None:
        keys = list(dict.fromkeys(key for plain in found[1] for key in plain))[:20]
        told = _("JSON objects without a text; their keys are: {keys}", keys=", ".join(keys))
        step = _("Name the one that holds the text with --text-column")
    elif sample.text.lstrip().startswith(('{"', '[{"', "{'")):
        told = _("the file begins like JSON, but its first object cannot be read")
        step = _("Check the first lines; or read it line by line with --format text")
    elif sample.path.suffix.lower() == ".json" and sample.whole and _is_json(sample.text):
        told = _("JSON, but no list of objects")
        step = _("Rows look like {row}, one a line", row='{"text": "...", "label": "..."}')
    else:
        return None
    return Refusal(told, where=f"{sample.path}:1", next_step=step, code="FT192")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    except RecursionError:
        # Nested so deep that nobody can read it: no list of texts, whatever else it is.
        return True
    return True
