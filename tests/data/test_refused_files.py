"""Files that cannot be read or written as a whole, rows that cannot be used: said, counted, and nothing is damaged."""

from pathlib import Path

import pytest

from fitune.data import Format, Rows, read, write
from fitune.values import Example, Refusal

FIXTURES = Path(__file__).parent / "fixtures"


def all_counted(rows: Rows) -> bool:
    return rows.rows_in_file == len(rows.examples) + len(rows.skipped) + rows.merged


def test_every_row_left_out_has_its_line_and_reason(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\n好\t1\n\t0\n坏\t\n只有一格\n好\t1\n", "utf-8")
    rows = read(path)
    assert len(rows.examples) == 2
    assert [s.source.line for s in rows.skipped] == [3, 4, 5]
    assert all(s.reason for s in rows.skipped)
    assert all_counted(rows)


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "a"
    for content in (b"", b"\x1f\x8b\x08\0\0\0\0", b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x80\x80\x80"):
        path.write_bytes(content)
        with pytest.raises(Refusal):
            read(path)
    with pytest.raises(Refusal):
        read(tmp_path / "missing.txt")
    with pytest.raises(Refusal):
        read(tmp_path)


def test_json_without_a_text_is_refused(tmp_path):
    path = tmp_path / "a.json"
    for content in ('{"a": 1, "b": 2}', '{"text": "abc', '[{"text": ', '{"O": 0, "B-LOC": 1}'):
        path.write_text(content)
        with pytest.raises(Refusal):
            read(path)


def test_names_of_formats():
    assert read(FIXTURES / "reviews_commas.csv", format="text").examples[0].text == "1,很快,很好吃"
    for name in ("cluener", "no-such-format", "excel", "parallel"):
        with pytest.raises(Refusal) as refusal:
            read(FIXTURES / "reviews_commas.csv", format=name)
        assert refusal.value.next_step
    with pytest.raises(Refusal):
        read(FIXTURES / "cluener.jsonl", task="classification")


def test_nothing_is_left_behind_when_writing_is_refused(tmp_path):
    out = tmp_path / "out.txt"
    out.write_text("before", "utf-8")
    with pytest.raises(Refusal):
        write(out, [Example("一行\n两行")], Format(name="text"))
    with pytest.raises(Refusal):
        write(out, [Example("🙂")], Format(name="text", encoding="big5"))
    assert out.read_text("utf-8") == "before"
    assert list(tmp_path.iterdir()) == [out]


def test_messages_are_chinese_where_the_reader_is(tmp_path):
    from fitune.messages import set_language

    set_language("zh")
    try:
        with pytest.raises(Refusal, match="没有这个文件"):
            read(tmp_path / "x")
        assert "标签" in read(FIXTURES / "columns_bmes.txt").format.evidence
    finally:
        set_language("en")


def test_a_file_cut_within_its_last_character_is_utf8(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    path.write_bytes("1,很快\n1,很".encode()[:-1])
    rows = read(path)
    assert rows.format.encoding == "utf-8"
    assert [e.text for e in rows.examples] == ["很快"]
    assert [s.source.line for s in rows.skipped] == [2]


def test_a_table_without_a_label_column_is_not_read_as_text(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(f"标题{n}的内容很长很长,另一列{n}的内容也很长很长,第三列{n}" for n in range(30)), "utf-8")
    with pytest.raises(Refusal) as refusal:
        read(path)
    assert "--label-column" in refusal.value.next_step
    assert len(read(path, format="text").examples) == 30


def test_a_failed_write_names_the_path_that_was_typed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        write(tmp_path / "nowhere" / "out.jsonl", [], Format(name="json"))
    assert missing.value.filename == str(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("cells.csv", 'foo,bar\n"甲,\n""乙""",一\n丙,二\n"丁\n戊",三\n' * 20, "no column could be told"),
        ("numbers.json", "[1, 2, 3]", "JSON, but no list of objects"),
        ("word.json", '"text"', "JSON, but no list of objects"),
        ("binary.json", "\0\1\2" * 500, "no text file"),
        ("binary.csv", "\0\0a,b\n" * 500, "no text file"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(tmp_path: Path, name: str, content: str, found: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(Refusal, match=found) as refused:
        read(path)
    assert refused.value.next_step


def test_json_too_deep_to_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": ' + "[" * 20_000, "utf-8")
    with pytest.raises(Refusal):
        read(path)
    path.write_text("[" * 5_000 + "]" * 5_000, "utf-8")
    with pytest.raises(Refusal):
        read(path)
