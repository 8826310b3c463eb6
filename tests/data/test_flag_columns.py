"""Columns of 0 and 1 whose names are the labels, and tables in which several columns could be the label."""

import json
from pathlib import Path

import pytest

from fitune.data import check, read, stream, write
from fitune.messages import set_language
from fitune.values import Example, Prediction, Refusal

FIXTURES = Path(__file__).parent / "fixtures"
TABLE = [
    ("text", "正面", "物流", "客服"),
    ("送得快，客服也好", "1", "1", "1"),
    ("包装破了", "0", "1", "0"),
    ("一般", "0", "0", "0"),
    ("客服很耐心", "1", "0", "1"),
]
LABELS = [("正面", "物流", "客服"), ("物流",), (), ("正面", "客服")]


def bare(example: Example) -> tuple[object, ...]:
    return example.text, example.spans, example.labels, example.text_pair


def table(path: Path, rows: list[tuple[str, ...]] = TABLE) -> Path:
    """The rows as the format that the file's ending names."""
    if path.suffix == ".xlsx":
        import openpyxl

        book = openpyxl.Workbook()
        for row in rows:
            book.active.append([int(cell) if cell in ("0", "1") else cell for cell in row])
        book.save(path)
    elif path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        columns = {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}
        columns = {n: v if n == "text" else [int(cell) for cell in v] for n, v in columns.items()}
        parquet.write_table(pyarrow.table(columns), path)
    elif path.suffix == ".jsonl":
        plain = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
        plain = [{k: int(v) if v in ("0", "1") else v for k, v in one.items()} for one in plain]
        path.write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in plain), "utf-8")
    else:
        separator = "\t" if path.suffix == ".tsv" else ","
        path.write_text("\n".join(map(separator.join, rows)), "utf-8")
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.xlsx", "a.parquet", "a.jsonl"])
def test_each_column_of_flags_is_a_label(tmp_path: Path, name: str) -> None:
    rows = read(table(tmp_path / name))
    assert (rows.task, rows.multi_label) == ("classification", True)
    assert [e.labels for e in rows.examples] == LABELS
    assert rows.labels == tuple(sorted(["正面", "物流", "客服"]))
    assert "正面, 物流, 客服" in rows.notes[0]
    assert "正面" in rows.format.evidence
    again = tmp_path / f"again{Path(name).suffix}"
    write(again, rows.examples, rows.format)
    for format in (None, rows.format):
        assert list(map(bare, read(again, format=format).examples)) == list(map(bare, rows.examples))


def test_the_note_is_shown_by_check_in_both_languages(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv")
    for language, words in (("en", "columns of 0 and 1"), ("zh", "0 和 1 的列")):
        set_language(language)
        try:
            assert any(words in finding.title for finding in check({"train": read(path)}).findings)
        finally:
            set_language("en")


def test_one_flag_in_every_row_is_one_label(tmp_path: Path) -> None:
    rows = [("text", "好", "坏"), ("真好", "1", "0"), ("真坏", "0", "1"), ("很好", "1", "0"), ("很坏", "0", "1")]
    found = read(table(tmp_path / "a.csv", rows))
    assert not found.multi_label
    assert [e.labels for e in found.examples] == [("好",), ("坏",), ("好",), ("坏",)]


@pytest.mark.parametrize("asked", ["物流,客服", "物流，客服", "3,4"])
def test_flag_columns_can_be_named(tmp_path: Path, asked: str) -> None:
    rows = read(table(tmp_path / "a.csv"), label_column=asked)
    assert [e.labels for e in rows.examples] == [("物流", "客服"), ("物流",), (), ("客服",)]
    assert not rows.notes
    one = read(table(tmp_path / "a.csv"), label_column="正面")
    assert (one.multi_label, one.labels) == (False, ("0", "1"))
    with pytest.raises(Refusal, match="no column '价格'"):
        read(table(tmp_path / "a.csv"), label_column="物流,价格")


def test_cells_that_are_no_flags_are_counted(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [*TABLE, ("坏格子", "1", "2", "0"), ("空格子", "1", "", ""), ("全空", "", "", "")])
    rows = read(path, label_column="正面,物流,客服")
    assert rows.examples[-1].labels == ("正面",)
    assert [s.source.line for s in rows.skipped] == [6, 8]
    assert "'物流'" in rows.skipped[0].reason


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx", "a.jsonl"])
def test_columns_that_could_all_be_the_label_are_asked_back(tmp_path: Path, name: str) -> None:
    rows = [
        ("text", "渠道", "城市", "正面"),
        *((f"第{i}条评论", "网页手机"[i % 2 * 2 :][:2], "南京" * (i % 3), "1") for i in range(24)),
    ]
    path = table(tmp_path / name, rows)
    with pytest.raises(Refusal, match="could be the label: 渠道, 城市") as refused:
        read(path)
    assert "--label-column 渠道" in refused.value.next_step
    assert read(path, label_column="渠道").labels == ("手机", "网页")
    assert all(e.labels is None for e in stream(path)), "nothing is learned from a file to predict on"


def test_flags_without_names_are_asked_back(tmp_path: Path) -> None:
    path = table(tmp_path / "a.tsv", [(f"第{i}条评论", str(i % 2), str(i % 3 % 2)) for i in range(24)])
    with pytest.raises(Refusal, match="could be the label: 2, 3"):
        read(path)
    assert read(path, label_column="2,3").examples[3].labels == ("2",)


@pytest.mark.parametrize("name", ["a.csv", "a.xlsx", "a.parquet", "a.jsonl"])
def test_predictions_go_into_the_columns_or_beside_them(tmp_path: Path, name: str) -> None:
    opened = stream(table(tmp_path / name))
    texts = [e.text for e in opened]
    known = [Prediction(text, None, ("物流",), {"正面": 0.1, "物流": 0.9, "客服": 0.2}) for text in texts]
    out = tmp_path / f"out{Path(name).suffix}"
    write(out, known, opened.format)
    assert {e.labels for e in read(out).examples} == {("物流",)}
    write(out, [Prediction(text, None, ("差",), {"好": 0.1, "差": 0.9}) for text in texts], opened.format)
    assert {e.labels for e in read(out, label_column="label").examples} == {("差",)}
    with pytest.raises(Refusal, match="no column"):
        write(out, [Example("甲", None, ("差",))], opened.format)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.xlsx"])
def test_a_title_above_the_header_is_no_row(tmp_path: Path, name: str) -> None:
    body = [("文本", "标签"), *((f"第{i}条", "好坏"[i % 2]) for i in range(6))]
    path = table(tmp_path / name, [("2024年评论", ""), *body])
    rows = read(path)
    assert (len(rows.examples), rows.labels, rows.skipped) == (6, ("坏", "好"), [])
    assert (rows.structure["title"], rows.structure["header"]) == (1, 1)
    assert rows.examples[0].source is not None
    assert rows.examples[0].source.line == 3
    write(path, rows.examples, rows.format)
    for format in (None, rows.format):
        assert list(map(bare, read(path, format=format).examples)) == list(map(bare, rows.examples))
