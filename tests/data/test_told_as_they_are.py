"""Files that something is missing from, or that could be read in two ways: told as what they are."""

import json

import pytest

from fitune.data import check, read
from fitune.data.rows import Tally
from fitune.values import Example, Refusal, Source

CLUENER = [
    {"text": "张三在北京", "label": {"name": {"张三": [[0, 1]]}}},
    {"text": "李四在上海", "label": {"name": {"李四": [[0, 1]]}}},
]
SPANS = [{"text": "张三在北京", "entities": [[0, 2, "name"]]}, {"text": "李四在上海", "entities": [[0, 2, "name"]]}]
TOKENS = [{"tokens": ["张", "三"], "ner_tags": ["B-P", "I-P"]}, {"tokens": ["李", "四"], "ner_tags": ["B-P", "I-P"]}]


def lines_of(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.mark.parametrize("rows", [CLUENER, SPANS, TOKENS])
def test_rows_without_a_label_are_unlabelled_and_not_wrong(tmp_path, rows):
    path = tmp_path / "a.json"
    bare = dict(list(rows[0].items())[:1])
    path.write_text(lines_of([*rows, bare]), "utf-8")
    read_rows = read(path)
    assert [example.spans is None for example in read_rows.examples] == [False, False, True]
    assert not read_rows.skipped
    found = check({"train": read_rows})
    assert [finding.count for finding in found.found("FT117")] == [1]
    assert not found.found("FT114")
    assert not found.found("FT102"), "a row without labels contradicts nothing"


@pytest.mark.parametrize(
    ("header", "places", "more"),
    [
        ("text,label,label", "2, 3", {"label_column": "3"}),
        ("text,text,label", "1, 2", {"text_column": "2"}),
        ("评论,评论,标签", "1, 2", {"text_column": "1"}),
    ],
)
def test_two_columns_of_one_name_are_asked_back(tmp_path, header, places, more):
    path = tmp_path / "a.csv"
    middle = "AB" if header.count("label") > 1 else ["标题甲", "标题乙"]
    path.write_text(
        header + "\n" + "".join(f"第{n}条评论很好,{middle[n % 2]},{'XY'[n % 2]}\n" for n in range(20)), "utf-8"
    )
    with pytest.raises(Refusal) as refusal:
        read(path)
    assert places in refusal.value.found
    assert refusal.value.code == "FT195"
    assert len(read(path, **more).examples) == 20


def test_sentences_without_blank_lines_between_them_are_told(tmp_path):
    path = tmp_path / "a.bio"
    sentence = "张\tB-P\n三\tI-P\n在\tO\n家\tO\n。\tO\n"
    path.write_text(sentence * 400, "utf-8")
    (finding,) = check({"train": read(path)}).found("FT123")
    assert finding.count == 2000
    path.write_text((sentence + "\n") * 400, "utf-8")
    assert not check({"train": read(path)}).found("FT123")


def test_an_unknown_task_is_named_with_the_known_ones(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(lines_of(CLUENER), "utf-8")
    with pytest.raises(Refusal) as refusal:
        read(path, task="nre")
    assert "nre" in refusal.value.found
    assert "ner, classification" in refusal.value.next_step


@pytest.mark.parametrize(
    ("name", "content", "task"),
    [
        ("a.json", lines_of(CLUENER), "classification"),
        ("a.json", lines_of(SPANS), "classification"),
        ("a.csv", "评论,标签\n" + "很好,好评\n很差,差评\n" * 10, "ner"),
        ("a.jsonl", '{"text": "很好", "label": "好"}\n' * 4, "ner"),
    ],
)
def test_a_task_that_does_not_fit_the_file(tmp_path, name, content, task):
    path = tmp_path / name
    path.write_text(content, "utf-8")
    with pytest.raises(Refusal) as refusal:
        read(path, task=task)
    other = {"ner": "classification", "classification": "ner"}[task]
    assert other in refusal.value.found.split(":")[0]
    assert task in refusal.value.found


def test_one_row_is_told_as_one_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n很好,好\n", "utf-8")
    found = check({"train": read(path)}).found("FT107")[0]
    assert found.title == "train: there is one row, of the class 好"
    path.write_text("text,label\n" + "".join(f"第{n}个,{'甲乙'[n % 2]}\n" for n in range(20)) + "一个,丙\n", "utf-8")
    assert check({"train": read(path)}).found("FT113")[0].title == "train: one label occurs less than 5 times: 丙 (1)"


def test_one_class_gets_advice_that_fits_what_was_named(tmp_path):
    one, two = tmp_path / "a.csv", tmp_path / "b.csv"
    one.write_text("text,label\n" + "".join(f"第{n}个,好\n" for n in range(20)), "utf-8")
    two.write_text("text,label\n" + "".join(f"第{n}个,{'好坏'[n % 2]}\n" for n in range(20)), "utf-8")
    alone = check({"train": read(one)}).found("FT107")[0]
    assert not any("--dev" in fix.text or "oin" in fix.text for fix in alone.fixes)
    cut = check({"train": read(one), "dev": read(two)}).found("FT107")[0]
    assert "Join" in cut.fixes[0].text


def test_rows_without_labels_are_warned_of_with_how_many_and_where(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{**CLUENER[n % 2], "text": CLUENER[n % 2]["text"] + str(n)} for n in range(20)]
    path.write_text(lines_of([{"text": r["text"]} if n % 2 else r for n, r in enumerate(rows)]), "utf-8")
    found = check({"train": read(path)}).found("FT117")[0]
    assert found.severity == "warning"
    assert found.title == "train: 10 of 20 rows have no label"
    assert [line.split(": ")[0] for line in found.evidence] == [f"{path}:{n}" for n in (2, 4, 6)]


def test_what_a_reader_did_names_the_rows(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [
        {"text": f"第{n}个人是张三,住北京", "entities": [{"start": 5, "end": 7, "label": "name", "text": "张三"}]}
        for n in range(10)
    ]
    rows[3]["entities"][0].update(start=8, end=10)
    rows[7]["entities"][0].update(start=8, end=10)
    path.write_text(lines_of(rows), "utf-8")
    found = check({"train": read(path)}).found("FT119")
    assert [list(finding.evidence) for finding in found] == [[f"{path}:4", f"{path}:8"]]


def test_a_note_belongs_to_its_row_even_where_that_is_left_out():
    tally = Tally("a")
    tally.note("odd")
    tally.skip(3, "wrong")
    tally.note("odd")
    assert list(tally.placed([Example("x", source=Source("a", 4)), Example("y", source=Source("a", 5))]))
    assert tally.noted == {"odd": [Source("a", 3), Source("a", 4)]}
    assert tally.notes["odd"] == 2


def test_formats_are_listed_with_all_their_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n好,1\n", "utf-8")
    with pytest.raises(Refusal) as refusal:
        read(path, format="nonsense")
    for name in ("csv (tsv)", "json (jsonl)", "columns (conll, bio, bmes)", "excel (xlsx)"):
        assert name in refusal.value.next_step
