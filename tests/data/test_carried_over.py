"""What stands beside text and label comes out again, of every format that has room for it."""

import json
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitune.data import check, read, repair, stream, summary, whereabouts, write
from fitune.data.formats.beside import Beside
from fitune.values import Example, Prediction, Source, Span


def predicted(path, out, **more):
    """As ``fitune predict`` writes: every row of the file, another label."""
    opened = stream(path, labelled=False)
    found = [Prediction(e.text, source=e.source, text_pair=e.text_pair, **more) for e in opened]
    write(out, found, opened.format, original=path)
    return found


def test_a_tables_other_columns(tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text(
        'id,text,label,source\n1,很好,正,甲\n2,"两行\n一格",负,"乙,丙"\n\n3,,正,空\n4,没意思,负,\n', encoding="utf-8"
    )
    predicted(path, out, labels=("正",), scores={"正": 0.75, "负": 0.25})
    assert out.read_text(encoding="utf-8").splitlines() == [
        "id,text,label,source,score",
        "1,很好,正,甲,0.75",
        '2,"两行',
        '一格",正,"乙,丙",0.75',
        "4,没意思,正,,0.75",
    ]
    again = tmp_path / "again.csv"
    predicted(out, again, labels=("负",), scores={"负": 1.0})
    assert again.read_text(encoding="utf-8").splitlines()[0] == "id,text,label,source,score", "no column twice"
    assert again.read_text(encoding="utf-8").splitlines()[1] == "1,很好,负,甲,1"


def test_what_stood_in_the_other_columns_of_a_row_put_together_again(tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    rows = [f"{n},评论{n}很好,正" if n % 2 else f"{n},评论{n}不好,负" for n in range(40)]
    path.write_text("id,text,label\n" + "\n".join([*rows, "40,一般,还行,负"]) + "\n", encoding="utf-8")
    rows_read = read(path)
    write(out, rows_read.examples, rows_read.format, original=path)
    assert out.read_text(encoding="utf-8").splitlines()[-1] == '40,"一般,还行",负'


def test_excel_keeps_kinds(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    path, out = tmp_path / "in.xlsx", tmp_path / "out.xlsx"
    book = openpyxl.Workbook()
    when = datetime(2024, 5, 1, 12)
    for row in (["编号", "文本", "标签", "时间", "星"], [7, "很好", "正", when, 4.5], [8, "太差", "负", None, 1]):
        book.active.append(row)
    book.save(path)
    predicted(path, out, labels=("正",), scores={"正": 0.75})
    found = [list(row) for row in openpyxl.load_workbook(out).active.iter_rows(values_only=True)]
    assert found[0] == ["编号", "文本", "标签", "时间", "星", "scores"]
    assert found[1] == [7, "很好", "正", when, 4.5, '{"正": 0.75}']
    assert found[2][:5] == [8, "太差", "正", None, 1]


def test_parquet_keeps_types(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    columns = {"id": [7, 8], "text": ["很好", "太差"], "label": ["正", "负"], "tags": [["a"], []]}
    parquet.write_table(pyarrow.table(columns), path)
    predicted(path, out, labels=("正",), scores={"正": 0.75})
    table = parquet.read_table(out)
    assert table.schema.field("id").type == pyarrow.int64()
    assert table.to_pydict()["tags"] == [["a"], []]
    assert table.to_pydict()["id"] == [7, 8]
    assert table.to_pydict()["label"] == ["正", "正"]


@pytest.mark.parametrize("layout", ["lines", "array", "one line"])
def test_keys_of_json_objects(tmp_path, layout):
    path, out = tmp_path / "in.json", tmp_path / "out.json"
    rows = [
        {"id": n, "text": "很好" if n < 3 else f"第{n}条", "label": "正", "meta": {"from": [n, None]}} for n in range(6)
    ]
    told = {
        "lines": "\n".join(json.dumps(row, ensure_ascii=False) for row in rows),
        "array": json.dumps(rows, ensure_ascii=False, indent=1),
        "one line": json.dumps(rows, ensure_ascii=False),
    }
    path.write_text(told[layout], encoding="utf-8")
    predicted(path, out, labels=("负",), scores={"负": 0.5})
    written = out.read_text(encoding="utf-8")
    found = [json.loads(line) for line in written.splitlines()] if layout == "lines" else json.loads(written)
    assert [list(row) for row in found] == [["id", "text", "label", "meta", "scores"]] * 6
    assert [(row["id"], row["meta"], row["label"]) for row in found] == [(n, rows[n]["meta"], "负") for n in range(6)]


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ({"id": 5, "text": "张三在京", "label": [[0, 2, "名"]], "Comments": ["看"]}, {"id": 5, "Comments": ["看"]}),
        ({"id": 5, "text": "张三在京", "label": {"名": {"张三": [[0, 1]]}}, "who": "甲"}, {"id": 5, "who": "甲"}),
        ({"id": 5, "tokens": list("张三在京"), "ner_tags": ["B-名", "I-名", "O", "O"]}, {"id": 5}),
    ],
)
def test_keys_beside_entities(tmp_path, row, kept):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text("\n".join([json.dumps(row, ensure_ascii=False)] * 3), encoding="utf-8")
    predicted(path, out, spans=(Span(3, 4, "地"),))
    for line in out.read_text(encoding="utf-8").splitlines():
        assert json.loads(line).items() >= kept.items()
    assert [e.spans for e in read(out).examples] == [(Span(3, 4, "地"),)] * 3


def test_tasks_of_label_studio_keep_their_annotations(tmp_path):
    path, out = tmp_path / "in.json", tmp_path / "out.json"
    value = {"start": 0, "end": 2, "text": "张三", "labels": ["名"]}
    result = {"from_name": "label", "to_name": "text", "type": "labels", "value": value}
    task = {"id": 9, "data": {"text": "张三在京", "page": 4}, "annotations": [{"id": 1, "result": [result]}]}
    path.write_text(json.dumps([task, {**task, "id": 10}], ensure_ascii=False), encoding="utf-8")
    predicted(path, out, spans=(Span(3, 4, "地", 0.5),))
    first, second = json.loads(out.read_text(encoding="utf-8"))
    assert (first["id"], second["id"], first["data"]["page"]) == (9, 10, 4)
    assert first["annotations"] == task["annotations"]
    assert first["predictions"][0]["result"][0]["value"]["labels"] == ["地"]


def test_an_item_from_elsewhere_gets_nothing_of_others(tmp_path):
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("id,text,label\n1,很好,正\n2,太差,负\n", encoding="utf-8")
    rows = read(path)
    strange = [replace(rows.examples[0], source=Source("other.csv", 2)), replace(rows.examples[1], source=None)]
    write(out, [*strange, rows.examples[1]], rows.format, original=path)
    assert out.read_text(encoding="utf-8").splitlines()[1:] == [",很好,正", ",太差,负", "2,太差,负"]


def test_a_repaired_text_in_an_array_of_one_line_keeps_its_keys(tmp_path):
    path, out = tmp_path / "in.json", tmp_path / "out.json"
    texts = ["很好", "\ufeff太差", "", "很好", "一般"]
    path.write_text(json.dumps([{"id": n, "text": t, "label": "正"} for n, t in enumerate(texts)]), encoding="utf-8")
    rows = read(path)
    assert [whereabouts(s.source) for s in rows.skipped] == [f"{path}:1 (row 3)"]
    assert [e.source.row for e in rows.examples] == [1, 2, 4, 5]
    found = {finding.code: finding for finding in check({"train": rows}).findings}
    assert found["FT101"].evidence == (f"{path}:1 (row 4): again: 很好 (row 1)",)
    assert found["FT114"].evidence[0].startswith(f"{path}:1 (row 3): ")
    repaired, changes = repair(rows)
    write(out, repaired.examples, rows.format, original=path)
    assert [(row["id"], row["text"]) for row in json.loads(out.read_text(encoding="utf-8"))] == [
        (0, "很好"),
        (1, "太差"),
        (4, "一般"),
    ]
    assert summary(changes) == [
        "FT101 one repeated row removed",
        "FT114 one row left out that could not be used",
        "FT115 U+FEFF taken out of one text",
    ]


def test_a_line_of_its_own_says_where_a_row_is(tmp_path):
    path = tmp_path / "in.json"
    path.write_text('[{"text": "一", "label": "正"}, {"text": "二", "label": "负"},\n{"text": "三", "label": "正"}]\n')
    assert [str(e.source) for e in read(path).examples] == [f"{path}:1#1", f"{path}:1#2", f"{path}:2"]


def test_a_reason_of_another_row_in_the_line_stays(tmp_path):
    path = tmp_path / "in.json"
    rows = [{"text": "一", "label": "正"}, {"text": "", "label": "正"}, {"text": "二", "label": ""}]
    path.write_text(json.dumps(rows * 4), encoding="utf-8")
    opened = stream(path, labelled=False)
    assert len(list(opened)) == 8
    assert [s.source.row for s in opened.skipped] == [2, 5, 8, 11]


@pytest.mark.parametrize("joiner", ["", " "])
def test_other_columns_of_tokens(tmp_path, joiner):
    path, out = tmp_path / "in.conll", tmp_path / "out.conll"
    tokens = ["John", "visited", "New", "York"] if joiner else ["张三", "在", "北京", "市"]
    kinds, tags = ["NR", "VV", "NR", "NN"], ["B-PER", "O", "B-LOC", "I-LOC"]
    block = "\n".join(f"{t}\t{k}\t{g}" for t, k, g in zip(tokens, kinds, tags, strict=True))
    path.write_text((block + "\n\n") * 20, encoding="utf-8")
    length = len(tokens[0])
    predicted(path, out, spans=(Span(0, length, "ORG"),))
    lines = out.read_text(encoding="utf-8").split("\n\n")[7].splitlines()
    assert [line.split("\t") for line in lines] == [
        [t, k, g] for t, k, g in zip(tokens, kinds, ["B-ORG", "O", "O", "O"], strict=True)
    ]
    rows = read(path)
    write(out, rows.examples, rows.format, original=path)
    assert out.read_text(encoding="utf-8").strip() == path.read_text(encoding="utf-8").strip()


def test_an_entity_that_ends_inside_a_word_takes_the_words_apart(tmp_path):
    path, out = tmp_path / "in.conll", tmp_path / "out.conll"
    path.write_text("张三在\tNR\tO\n京\tNR\tB-LOC\n\n" * 20, encoding="utf-8")
    predicted(path, out, spans=(Span(0, 2, "PER"),))
    assert out.read_text(encoding="utf-8").split("\n\n")[0].splitlines() == [
        "张\t_\tB-PER",
        "三\t_\tI-PER",
        "在\t_\tO",
        "京\t_\tO",
    ]
    row = {"id": 1, "tokens": ["张三在", "京"], "ner_tags": ["O", "B-LOC"], "pos": ["NR", "NR"]}
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text("\n".join([json.dumps(row)] * 3), encoding="utf-8")
    predicted(path, out, spans=(Span(0, 2, "PER"),))
    assert json.loads(out.read_text(encoding="utf-8").splitlines()[0]) == {
        "id": 1,
        "tokens": list("张三在京"),
        "ner_tags": ["B-PER", "I-PER", "O", "O"],
    }
    predicted(path, out, spans=(Span(0, 3, "PER"),))
    assert json.loads(out.read_text(encoding="utf-8").splitlines()[0]) == {**row, "ner_tags": ["B-PER", "O"]}


def test_every_tag_that_a_repaired_copy_changes_is_counted(tmp_path):
    path, out = tmp_path / "in.bmes", tmp_path / "out.bmes"
    sentences = [
        ["B-A", "E-A", "O"],
        ["M-A", "E-A", "O"],
        ["B-A", "M-A", "O"],
        ["M-A", "O", "S-B"],
        ["B-A", "B-A", "O"],
    ]
    blocks = [
        "\n".join(f"{chr(0x4E00 + 9 * n + i)} {tag}" for i, tag in enumerate(tags)) for n, tags in enumerate(sentences)
    ]
    path.write_text("\n\n".join([*blocks, blocks[1]]) + "\n", encoding="utf-8")
    rows = read(path)
    repaired, changes = repair(rows)
    write(out, repaired.examples, rows.format, original=path)
    before, after = path.read_text(encoding="utf-8").splitlines(), out.read_text(encoding="utf-8").splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=False) if a != b]
    assert len(changed) == 5
    mended = [change for change in changes if change.code == "FT109"]
    assert [(change.before, change.after) for change in mended] == [(a[2:], b[2:]) for a, b in changed]
    assert summary(changes) == ["FT101 one repeated row removed", "FT109 5 tags made valid"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=12), st.booleans())
def test_every_row_is_found_again(drawn, twice):
    lines = sorted(line for line, _keep in drawn)
    places = [(line, number if lines.count(line) > 1 else 0) for number, line in enumerate(lines, 1)]
    beside = Beside("f", [(place, place) for place in places])
    for place, (_line, keep) in zip(places, drawn, strict=True):
        for _time in range(keep + twice):
            assert beside.of(Example("a", source=Source("f", place[0], place[1] or None))) == place
    assert beside.of(Example("a", source=Source("f", 5))) is None
