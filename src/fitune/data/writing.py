"""``write`` rows in the format that came in, with whatever stood beside them in the file that they came from."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fitune.data.encodings import read_lines, recognize_encoding, write_lines
from fitune.data.formats import PATH_FORMATS, TextFormat
from fitune.data.formats.beside import Beside
from fitune.data.label_rows import one_row_per_label
from fitune.data.reading import text_format
from fitune.data.rows import Format
from fitune.messages import _
from fitune.values import Example, Prediction, Refusal


def write(
    path: str | os.PathLike[str],
    items: Iterable[Example | Prediction],
    format: Format,
    *,
    original: str | os.PathLike[str] | None = None,
) -> None:
    """Examples or predictions in the given format and encoding; the file appears whole or not at all.

    Predictions carry their scores where the format has a place for them. ``original`` is the file that the items were
    read from: the other columns of a table and the other keys of a JSON object are carried over from it, each row found
    by the place that its item came from. It is read a second time, in step, so memory does not grow with it. Raises
    Refusal when a text cannot be expressed in the format (a line break in a format of lines, for example).
    """
    place = Path(path)
    beside = Path(original) if original is not None else None
    if format.details.get("row_per_label"):
        items = one_row_per_label(items)
    aside = place.with_name(f"{place.name}.{os.getpid()}.part")
    path_format = next((known for known in PATH_FORMATS if known.name == format.name), None)
    if path_format is not None and path_format.files > 1:
        path_format.write(place, items, format, beside)
        return
    try:
        if path_format is not None:
            path_format.write(aside, items, format, beside)
        else:
            writer = text_format(format.name)
            kept = _beside(writer, beside, format)
            with aside.open("w", encoding=format.encoding, newline="") as file:
                write_lines(file, writer.dump(items, format, *kept), format.encoding, format.newline)
        aside.replace(place)
    except OSError as error:
        if error.filename is not None:
            # Nobody typed the name of the part.
            error.filename = str(place if place.is_dir() or place.parent.is_dir() else place.parent)
        raise
    except UnicodeEncodeError as error:
        character = repr(error.object[error.start])
        raise Refusal(
            _("the encoding {encoding} has no {character}", encoding=format.encoding, character=character),
            where=str(place),
            next_step=_("Choose an output file that ends in .jsonl"),
            code="FT198",
        ) from None
    finally:
        aside.unlink(missing_ok=True)


def _beside(writer: TextFormat, original: Path | None, format: Format) -> tuple[Beside[Any], ...]:
    """What ``dump`` takes as its third argument, where the format's rows hold more than text and label."""
    if original is None or writer.rows is None:
        return ()
    lines = read_lines(original, recognize_encoding(original, format.encoding))
    return (Beside(str(original), writer.rows(lines, format)),)


__all__ = ["write"]
