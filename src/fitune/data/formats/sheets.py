"""Excel and Parquet: rows of cells in a binary file, for classification. The first row of a sheet is its header."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

from fitune.data.formats.base import Columns, PathFormat
from fitune.data.formats.beside import Beside
from fitune.data.formats.layouts import has_known_name, header_and_layout, rows_above_header, text_of, undecided_label
from fitune.data.formats.tables import RowMaker, fits_columns, flag_cells, label_cell, label_details
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Example, Prediction, Refusal

_SAMPLE_ROWS = 2000
Row = list[Any]


def _need(module: str, path: Path) -> Any:
    """An optional library, or Refusal that says how to get it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise Refusal(
            _("this file needs the package {module}, which is not installed", module=module.partition(".")[0]),
            where=str(path),
            next_step='pip install "fitune[excel]"',
            code="FT192",
        ) from None


def _unreadable(path: Path, kind: str, error: Exception) -> Refusal:
    return Refusal(
        _(
            "the file is damaged or no {kind} file: {problem}",
            kind=kind,
            problem=str(error)[:200] or type(error).__name__,
        ),
        where=str(path),
        next_step=_("Open it where it was made and save it again, or as CSV"),
        code="FT192",
    )


def _excel_rows(path: Path) -> Iterator[Row]:
    """The rows of the first sheet."""
    openpyxl = _need("openpyxl", path)
    try:
        with path.open("rb") as file:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            for row in book.worksheets[0].iter_rows(values_only=True):
                yield list(row)
    except (MemoryError, KeyboardInterrupt, GeneratorExit):
        raise
    except Exception as error:
        # openpyxl lets through whatever zipfile, the XML parser and its own parts raise.
        raise _unreadable(path, "Excel", error) from error


def _parquet_rows(path: Path) -> Iterator[Row]:
    """The rows of a Parquet file, after one with the names of its columns."""
    pyarrow = _need("pyarrow", path)
    parquet = _need("pyarrow.parquet", path)
    try:
        file = parquet.ParquetFile(path)
        names = list(file.schema_arrow.names)
        yield list(names)
        for batch in file.iter_batches(batch_size=4096):
            yield from map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))
    except (pyarrow.lib.ArrowException, OSError, ValueError, KeyError, UnicodeDecodeError) as error:
        raise _unreadable(path, "Parquet", error) from error


def _recognize(path: Path, columns: Columns, rows: Iterator[Row], name: str) -> Format | None:
    top = list(islice(rows, 6))
    titles = rows_above_header(top) if name == "excel" else 0
    rows = chain(top[titles:], rows)
    first = next(rows, None)
    if first is None:
        raise Refusal(_("the file holds no rows"), where=str(path), next_step=_("Name a file with rows in it"))
    head = [text_of(cell) for cell in first]
    known = name == "parquet" or has_known_name(head)
    sample = [[_cell(cell) for cell in row] for row in islice(rows, _SAMPLE_ROWS)]
    header, layout = header_and_layout(head, known, sample if known else [head, *sample], columns, path)
    if layout is None:
        raise Refusal(
            _("no column holds texts; the columns are: {known}", known=", ".join(head)),
            where=f"{path}:1",
            next_step=_("Name it with {option}", option="--text-column"),
            code="FT195",
        )
    if layout.undecided and columns.labelled:
        raise undecided_label(layout, header, path)
    details: dict[str, Any] = {"header": header, "width": len(head), **layout.details(header)}
    if titles:
        details["titles"] = titles
    if layout.label is not None:
        body = sample if header is not None else [head, *sample]
        cells = [text_of(row[layout.label]) for row in body if layout.label < len(row)]
        details.update(label_details(cells, columns, None if header is not None else path))
    task = "classification" if layout.labelled else None
    evidence = _("{kind} file; {columns}", kind=name.capitalize(), columns=layout.evidence)
    return Format(name=name, task=task, details=details, evidence=evidence)


def _cell(cell: object) -> object:
    """A list of labels as the JSON that RowMaker reads."""
    if isinstance(cell, (list, tuple)):
        return json.dumps([text_of(part) for part in cast(list[object], cell)], ensure_ascii=False)
    return cell


def _below_header(rows: Iterator[Row], format: Format, tally: Tally) -> Iterator[tuple[int, Row]]:
    """(number, row) for each row below the titles and the header; the first of a sheet is 1."""
    details = format.details
    start = 1
    if (header := details.get("header")) is not None:
        for start in range(2, 3 + int(details.get("titles", 0))):
            row = next(rows, None)
            if row is None or start == 2 + int(details.get("titles", 0)) or [text_of(cell) for cell in row] == header:
                break
            tally.structure["title"] += 1
        tally.structure["header"] += 1
    yield from enumerate(rows, start)


def _parse(rows: Iterator[Row], format: Format, tally: Tally) -> Iterator[Example]:
    details = format.details
    text_at, pair_at, label_at = details["text"], details.get("text_pair"), details.get("label")
    flags_at: list[int] = details.get("label_columns", [])
    make = RowMaker(format, tally).example
    for number, row in _below_header(rows, format, tally):
        cells = [text_of(_cell(cell)) for cell in row]
        cells += [""] * (int(details["width"]) - len(cells))
        if not any(cells):
            tally.structure["blank"] += 1
            continue
        pair = cells[pair_at] if pair_at is not None else None
        label = [cells[i] for i in flags_at] if flags_at else cells[label_at] if label_at is not None else None
        example = make(number, cells[text_at], pair, label)
        if example is not None:
            yield example


def _beside(original: Path | None, rows: Callable[[Path], Iterator[Row]], format: Format) -> Beside[Row] | None:
    """The rows of the file that was read, each as wide as its header."""
    if original is None:
        return None
    width = int(format.details["width"])
    numbered = _below_header(rows(original), format, Tally(""))
    wide = (((number, 0), [*row, *[None] * (width - len(row))][:width]) for number, row in numbered)
    return Beside(str(original), wide)


def _cells(item: Example | Prediction, format: Format, fits: bool, row: Row) -> Row:
    details = format.details
    cells: Row = list(row) or [None] * int(details["width"])
    cells[details["text"]] = item.text
    if details.get("text_pair") is not None:
        cells[details["text_pair"]] = item.text_pair
    if details.get("label") is not None:
        cells[details["label"]] = label_cell(item.labels, details) or None
    if details.get("label_columns") and fits:
        for index, cell in zip(details["label_columns"], flag_cells(item, details, format.name), strict=True):
            cells[index] = cell or None
    return cells


def _extra(item: Example | Prediction, format: Format, fits: bool) -> dict[str, str | float | None]:
    """Columns that were not in the file: what a prediction brings. ``fits``: its labels have columns of 0 and 1."""
    extra: dict[str, str | float | None] = {}
    here = format.details.get("label") is not None or (bool(format.details.get("label_columns")) and fits)
    if not here and item.labels is not None:
        extra["label"] = label_cell(item.labels, format.details)
    if isinstance(item, Prediction):
        if item.scores is not None:
            extra["scores"] = json.dumps(item.scores, ensure_ascii=False)
        if item.spans is not None:
            extra["entities"] = json.dumps(item.to_json()["entities"], ensure_ascii=False)
    return extra


_NO_XML = re.compile("[\ufffe\uffff]")


def _row(item: Example | Prediction, format: Format, fits: bool, beside: Beside[Row] | None) -> Row:
    """The row that is written; what a prediction brings under names that the file has goes there."""
    cells = _cells(item, format, fits, (beside.of(item) if beside else None) or [])
    header: list[str] = format.details.get("header") or []
    # Without a header there is no place for names.
    for name, cell in _extra(item, format, fits).items() if header else ():
        if name in header:
            cells[header.index(name)] = cell
        else:
            cells.append(cell)
    return cells


def _names(first: Example | Prediction | None, format: Format, fits: bool) -> list[str]:
    header: list[str] = format.details["header"]
    extra = _extra(first, format, fits) if first is not None else {}
    return [*header, *(name for name in extra if name not in header)]


def _write_excel(
    path: Path, items: Iterable[Example | Prediction], format: Format, original: Path | None = None
) -> None:
    openpyxl = _need("openpyxl", path)
    from openpyxl.cell import WriteOnlyCell

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    beside = _beside(original, _excel_rows, format)
    fits = True
    try:
        for index, item in enumerate(items):
            fits = fits_columns(item, format.details) if index == 0 else fits
            if index == 0 and format.details.get("header") is not None:
                sheet.append(_names(item, format, fits))
            row: list[Any] = []
            for value in _row(item, format, fits, beside):
                if isinstance(value, str) and _NO_XML.search(value):
                    # openpyxl writes these two, and no program reads the file again.
                    raise openpyxl.utils.exceptions.IllegalCharacterError(value)
                cell = WriteOnlyCell(sheet, value=value)
                # A text that begins with "=" is a text, not a formula.
                if isinstance(value, str):
                    cell.data_type = "s"
                row.append(cell)
            sheet.append(row)
    except Refusal:
        sheet.close()
        raise
    except openpyxl.utils.exceptions.IllegalCharacterError as error:
        sheet.close()
        raise Refusal(
            _("an Excel cell cannot hold the control characters of this text: {text}", text=repr(str(error)[:60])),
            where=str(path),
            next_step=_("Choose an output file that ends in .jsonl"),
            code="FT198",
        ) from None
    book.save(path)


def _write_parquet(
    path: Path, items: Iterable[Example | Prediction], format: Format, original: Path | None = None
) -> None:
    """Text and labels as strings; the other columns of the original keep their types."""
    pyarrow = _need("pyarrow", path)
    parquet = _need("pyarrow.parquet", path)
    source = iter(items)
    block = list(islice(source, 4096))
    fits = fits_columns(block[0] if block else None, format.details)
    details, beside = format.details, _beside(original, _parquet_rows, format)
    schema = pyarrow.schema([(name, pyarrow.string()) for name in _names(block[0] if block else None, format, fits)])
    if original is not None:
        written = {details["text"], details.get("text_pair"), details.get("label"), *details.get("label_columns", ())}
        brought = _extra(block[0], format, fits) if block else {}
        for index, field in enumerate(parquet.ParquetFile(original).schema_arrow):
            if index not in written and field.name not in brought:
                schema = schema.set(index, field)
    with parquet.ParquetWriter(path, schema) as writer:
        while block:
            columns = zip(*(_row(item, format, fits, beside) for item in block), strict=True)
            arrays = [pyarrow.array(list(c), field.type) for c, field in zip(columns, schema, strict=True)]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
            block = list(islice(source, 4096))


def _starts_with(path: Path, signature: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(signature)) == signature


def _recognize_excel(path: Path, columns: Columns, forced: bool) -> Format | None:
    return _recognize(path, columns, _excel_rows(path), "excel") if _starts_with(path, b"PK\x03\x04") else None


def _recognize_parquet(path: Path, columns: Columns, forced: bool) -> Format | None:
    return _recognize(path, columns, _parquet_rows(path), "parquet") if _starts_with(path, b"PAR1") else None


EXCEL = PathFormat(
    "excel", _recognize_excel, lambda path, format, tally: _parse(_excel_rows(path), format, tally), _write_excel
)
PARQUET = PathFormat(
    "parquet",
    _recognize_parquet,
    lambda path, format, tally: _parse(_parquet_rows(path), format, tally),
    _write_parquet,
)
