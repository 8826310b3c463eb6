"""Every format: what is recognised, what is read, and that reading what was written gives the same rows."""

import json
from pathlib import Path

import pytest

from fitune.data import Format, Rows, read, stream, write
from fitune.values import Example, Prediction, Refusal, Source, Span

FIXTURES = Path(__file__).parent / "fixtures"


def bare(example: Example) -> tuple[object, ...]:
    return example.text, example.spans, example.labels, example.text_pair


def all_counted(rows: Rows) -> bool:
    return rows.rows_in_file == len(rows.examples) + len(rows.skipped) + rows.merged


# name of the file, format, task, examples, labels, lines that are no rows
CASES = [
    ("cluener.jsonl", "cluener", "ner", 4, ("address", "company", "name", "position"), {}),
    ("columns_bmes.txt", "columns", "ner", 3, ("NAME", "ORG", "RACE", "TITLE"), {"blank": 3}),
    ("columns_weibo.txt", "columns", "ner", 2, ("GPE.NAM", "PER.NAM"), {"blank": 1}),
    ("columns_iob1.txt", "columns", "ner", 2, ("LOC", "PER"), {"docstart": 1, "blank": 2}),
    ("tag_cells.tsv", "tag-cells", "ner", 3, ("LOC", "PER"), {"header": 1}),
    ("reviews_quotes.tsv", "tsv", "classification", 6, ("0", "1"), {"header": 1}),
    ("reviews.csv", "csv", "classification", 4, ("0", "1"), {"header": 1}),
    ("reviews_commas.csv", "csv", "classification", 8, ("0", "1"), {}),
    ("titles/titles.txt", "tsv", "classification", 4, ("finance", "sports", "film"), {}),
    ("pairs.tsv", "tsv", "classification", 3, ("0", "1"), {"header": 1}),
    ("records.jsonl", "json", "classification", 3, ("3", "7"), {}),
    ("records_multi.json", "json", "classification", 3, ("looks", "price"), {}),
    ("multi.csv", "csv", "classification", 6, ("build", "looks", "price"), {"header": 1}),
    ("flags.csv", "csv", "classification", 4, ("客服", "正面", "物流"), {"header": 1}),
    ("fasttext.txt", "fasttext", "classification", 3, ("客服", "正面", "物流", "负面"), {"blank": 1}),
    ("doccano_utf16.jsonl", "spans", "ner", 2, ("name", "place"), {}),
    ("spans_lists.jsonl", "spans", "ner", 3, ("name", "place"), {}),
    ("spans_pretty.json", "spans", "ner", 2, ("name", "place"), {}),
    ("label_studio.json", "label-studio", "ner", 2, ("name", "place"), {}),
    ("label_studio_choices.json", "label-studio", "classification", 2, ("正面", "负面"), {}),
    ("word_tag.txt", "word-tag", "ner", 3, ("nr", "ns", "nt"), {}),
    ("inline.txt", "inline", "ner", 3, ("name", "place"), {}),
    ("parallel/sentences.txt", "parallel", "ner", 2, ("LOC",), {}),
    ("plain.txt", "text", None, 3, (), {"blank": 1}),
]


@pytest.mark.parametrize(("name", "format", "task", "count", "labels", "structure"), CASES)
def test_fixture_is_recognised(name, format, task, count, labels, structure):
    rows = read(FIXTURES / name)
    assert (rows.format.name, rows.task, len(rows.examples), rows.labels) == (format, task, count, labels)
    assert rows.skipped == []
    assert dict(rows.structure) == structure
    assert all_counted(rows)
    assert rows.format.evidence


@pytest.mark.parametrize("name", [case[0] for case in CASES])
def test_read_write_read_is_the_identity(name, tmp_path):
    rows = read(FIXTURES / name)
    again = tmp_path / (Path(name).stem + Path(name).suffix)
    write(again, rows.examples, rows.format)
    if name.startswith("titles"):
        (tmp_path / "class.txt").write_bytes((FIXTURES / "titles" / "class.txt").read_bytes())
    for other in (read(again), read(again, format=rows.format)):
        assert list(map(bare, other.examples)) == list(map(bare, rows.examples))
        assert other.format.name == rows.format.name
        assert (other.labels, other.multi_label, other.skipped) == (rows.labels, rows.multi_label, [])


@pytest.mark.parametrize("name", [case[0] for case in CASES])
def test_format_survives_json(name):
    format = read(FIXTURES / name).format
    assert Format.model_validate_json(format.model_dump_json()) == format


@pytest.mark.parametrize("name", [case[0] for case in CASES])
def test_stream_gives_the_same_rows(name):
    rows = read(FIXTURES / name)
    assert [bare(e) for e in stream(FIXTURES / name)] == [bare(e) for e in rows.examples]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "name", ["cluener.jsonl", "columns_bmes.txt", "reviews.csv", "pairs.tsv", "records_multi.json"]
)
def test_encodings(name, encoding, tmp_path):
    rows = read(FIXTURES / name)
    recoded = tmp_path / name
    recoded.write_bytes((FIXTURES / name).read_bytes().decode().encode(encoding))
    other = read(recoded)
    assert other.format.encoding == encoding
    assert list(map(bare, other.examples)) == list(map(bare, rows.examples))
    write(recoded, rows.examples, other.format)
    assert list(map(bare, read(recoded).examples)) == list(map(bare, rows.examples))


def test_inclusive_ends_are_found_not_assumed(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "在青岛", "label": {"address": {"青岛": [[1, 3]]}}}\n', "utf-8")
    assert read(path).examples[0].spans == (Span(1, 3, "address"),)
    assert read(FIXTURES / "cluener.jsonl").examples[0].spans == (Span(0, 3, "name"), Span(4, 6, "address"))


def test_position_digits_are_taken_off():
    rows = read(FIXTURES / "columns_weibo.txt")
    assert [e.text for e in rows.examples] == ["我想小满了", "去苏州2天"]
    assert rows.examples[0].spans == (Span(2, 4, "PER.NAM"),)


def test_words_are_joined_with_spaces():
    rows = read(FIXTURES / "columns_iob1.txt")
    assert rows.format.details["scheme"] == "IOB1"
    assert rows.examples[0].text == "Lena Vogt visits Kiel ."
    assert [rows.examples[1].text[s.start : s.end] for s in rows.examples[1].spans] == ["Kiel", "Bremen"]


def test_unescaped_quotes_are_text():
    rows = read(FIXTURES / "reviews_quotes.tsv")
    assert rows.examples[0].text == '"安静"的小店，下次还来'
    assert rows.examples[2].text == '"早餐丰富，房间干净'


def test_quoted_cells_hold_separators_quotes_and_line_ends():
    texts = [e.text for e in read(FIXTURES / "reviews.csv").examples]
    assert texts == ["很快，好吃,量也足", '送来时"已经"凉了', "味道不错", "汤洒了\n一半"]


def test_unquoted_commas_stay_in_the_text():
    rows = read(FIXTURES / "reviews_commas.csv")
    assert rows.examples[2].text == "不错,下次再来,真的"
    assert len(rows.notes) == 1


def test_source_is_file_and_line():
    rows = read(FIXTURES / "columns_bmes.txt")
    assert [e.source for e in rows.examples] == [Source(str(FIXTURES / "columns_bmes.txt"), n) for n in (1, 11, 19)]


def test_columns_can_be_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("kind,headline,text\na,头条,正文一\nb,标题,正文二\n", "utf-8")
    rows = read(path, text_column="headline", label_column="1")
    assert [bare(e) for e in rows.examples] == [("头条", None, ("a",), None), ("标题", None, ("b",), None)]
    with pytest.raises(Refusal) as refusal:
        read(path, text_column="body")
    assert "headline" in refusal.value.found
    assert "--text-column" in refusal.value.next_step


@pytest.mark.parametrize("values", ["正面 负面", "-1 1", "1 2", "0.0 1.0", "100 116", "pos neg"])
@pytest.mark.parametrize("label_first", [True, False])
def test_label_values(values, label_first, tmp_path):
    labels = values.split()
    rows = [("很好，下次还来", labels[0]), ("不好，不来了", labels[1])] * 6
    lines = ["\t".join(row[::-1] if label_first else row) for row in rows]
    path = tmp_path / "a.txt"
    path.write_text("\n".join(lines), "utf-8")
    read_rows = read(path)
    assert [(e.text, e.labels) for e in read_rows.examples] == [(text, (label,)) for text, label in rows]


def test_predictions_are_written_with_scores(tmp_path):
    rows = read(FIXTURES / "reviews.csv")
    out = tmp_path / "out.csv"
    write(out, [Prediction(e.text, None, ("1",), {"0": 0.25, "1": 0.75}) for e in rows.examples], rows.format)
    assert out.read_text("utf-8").splitlines()[0] == "label,review,score"
    again = read(out)
    assert [e.text for e in again.examples] == [e.text for e in rows.examples]
    assert {e.labels for e in again.examples} == {("1",)}


def test_utf16_offsets_are_converted():
    rows = read(FIXTURES / "doccano_utf16.jsonl")
    assert rows.format.details["unit"] == "utf16"
    assert rows.examples[0].spans == (Span(1, 3, "name"), Span(6, 8, "place"))


def test_mentions_decide_one_span_at_a_time(tmp_path):
    path = tmp_path / "a.jsonl"
    good = '{"text": "小满在烟台", "entities": [{"start": 0, "end": 2, "label": "n", "text": "小满"}]}\n'
    moved = '{"text": "在烟台", "entities": [{"start": 0, "end": 2, "label": "p", "text": "烟台"}]}\n'
    wrong = '{"text": "在烟台", "entities": [{"start": 0, "end": 2, "label": "p", "text": "青岛"}]}\n'
    path.write_text(good * 3 + moved + wrong, "utf-8")
    rows = read(path)
    assert rows.examples[3].spans == (Span(1, 3, "p"),)
    assert [s.source.line for s in rows.skipped] == [5]
    assert "青岛" in rows.skipped[0].reason
    assert len(rows.notes) == 1


def test_surname_and_given_name_are_one_person():
    rows = read(FIXTURES / "word_tag.txt")
    mentions = [[e.text[s.start : s.end] for s in e.spans] for e in rows.examples]
    assert mentions == [["林小满", "烟台"], ["海风出版社", "许真"], []]
    apart = read(FIXTURES / "word_tag.txt", format="word-tag,merge=no")
    assert [apart.examples[0].text[s.start : s.end] for s in apart.examples[0].spans] == ["林", "小满", "烟台"]
    others = read(FIXTURES / "word_tag.txt", format="word-tag,entities=t|ns")
    assert others.labels == ("ns", "t")


def test_folder_of_parallel_files():
    assert [bare(e) for e in read(FIXTURES / "parallel").examples] == [
        ("我在烟台", (Span(2, 4, "LOC"),), None, None),
        ("雨停了", (), None, None),
    ]
    assert read(FIXTURES / "parallel" / "tags.txt").examples[0].spans == (Span(2, 4, "LOC"),)


@pytest.mark.parametrize("kind", ["excel", "parquet"])
def test_sheets(kind, tmp_path):
    pytest.importorskip("openpyxl" if kind == "excel" else "pyarrow")
    examples = [Example("=很好，", None, ("1",)), Example("不好\n不来了", None, ("0",)), Example("还行", None, ("1",))]
    format = read(FIXTURES / "reviews.csv").format.model_copy(update={"name": kind})
    path = tmp_path / "a.bin"
    write(path, examples, format)
    rows = read(path)
    assert (rows.format.name, rows.task, rows.labels) == (kind, "classification", ("0", "1"))
    assert list(map(bare, rows.examples)) == list(map(bare, examples))
    assert [e.source.line for e in rows.examples] == [2, 3, 4]
    assert all_counted(rows)


def test_one_row_per_label(tmp_path):
    path = tmp_path / "a.tsv"
    lines = ["text\tlabel", "又好又便宜\t价格", "又好又便宜\t质量", "便宜\t价格", "结实好看\t质量", "结实好看\t外观"]
    lines += ["好看便宜\t外观", "好看便宜\t价格", "还行\t质量"]
    path.write_text("\n".join(lines), "utf-8")
    rows = read(path)
    assert rows.multi_label
    assert [e.labels for e in rows.examples][:2] == [("价格", "质量"), ("价格",)]
    assert (rows.rows_in_file, rows.merged, len(rows.examples)) == (8, 3, 5)
    write(path, rows.examples, rows.format)
    assert list(map(bare, read(path).examples)) == list(map(bare, rows.examples))
    assert len(read(path, multi_label=False).examples) == 8


def test_rows_without_a_label_are_kept_for_prediction(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n很好,1\n不好,\n没有第二格\n,0\n", "utf-8")
    opened = stream(path)
    assert [(e.text, e.labels) for e in opened] == [("很好", ("1",)), ("不好", None), ("没有第二格", None)]
    assert [s.source.line for s in opened.skipped] == [5]
    assert [s.source.line for s in read(path).skipped] == [3, 4, 5]


def test_a_format_of_one_file_reads_another(tmp_path):
    """A development file too small to recognise is read as the training file was."""
    train = read(FIXTURES / "titles" / "titles.txt").format
    path = tmp_path / "dev.txt"
    path.write_text("冠军\t1\n", "utf-8")
    assert read(path, format=train).examples[0].labels == ("sports",)


def test_predicted_entities_are_written_with_scores(tmp_path):
    found = Prediction("小满在烟台", (Span(0, 2, "name", 0.9), Span(3, 5, "place", 0.5)))
    for name in ("doccano_utf16.jsonl", "label_studio.json", "cluener.jsonl", "columns_bmes.txt", "spans_lists.jsonl"):
        out = tmp_path / name
        write(out, [found], read(FIXTURES / name).format)
        again = read(out).examples[0]
        assert [(s.start, s.end, s.label) for s in again.spans or ()] == [(0, 2, "name"), (3, 5, "place")]
    assert "0.9" in (tmp_path / "spans_lists.jsonl").read_text("utf-8")


def spans_file(path: Path, ends: int, *, empty: bool) -> Path:
    """Twelve rows with two places each; ``ends`` is added to every end, and some spans have start = end."""
    lines = []
    for row in range(12):
        text = f"{'今天' * (row % 3)}在北京{'和的很'[row % 3]}上海{'喝茶见'[row % 3]}"
        at = text.index("北京")
        spans = [[at, at + 2 + ends, "地"], [at + 3, at + 5 + ends, "地"]]
        if empty and row % 5 == 0:
            spans.append([0, 0, "字"])
        lines.append(json.dumps({"text": text, "entities": spans}, ensure_ascii=False))
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_a_few_empty_spans_do_not_move_the_ends_of_all_others(tmp_path: Path) -> None:
    rows = read(spans_file(tmp_path / "a.jsonl", 0, empty=True))
    assert {e.text[s.start : s.end] for e in rows.examples for s in e.spans} == {"北京", "上海"}
    assert len(rows.skipped) == 3, "rows with an empty span are left out and counted"


def test_one_character_spans_tell_inclusive_ends(tmp_path: Path) -> None:
    rows = read(spans_file(tmp_path / "a.jsonl", -1, empty=True))
    found = {(e.text[s.start : s.end], s.label) for e in rows.examples for s in e.spans}
    assert {text for text, label in found if label == "地"} == {"北京", "上海"}
    assert not rows.skipped


def test_token_lists_as_model_hubs_have_them(tmp_path: Path) -> None:
    rows = read(FIXTURES / "token_lists.jsonl")
    assert rows.format.name == "token-lists"
    assert [(e.text, [(e.text[s.start : s.end], s.label) for s in e.spans]) for e in rows.examples] == [
        ("李雷住在南京。", [("李雷", "PER"), ("南京", "LOC")]),
        ("没有实体", []),
        ("iPhone在沪发布", [("iPhone", "PROD"), ("沪", "LOC")]),
    ]
    out = tmp_path / "out.jsonl"
    write(out, rows.examples, rows.format)
    again = read(out)
    assert [(e.text, e.spans) for e in again.examples] == [(e.text, e.spans) for e in rows.examples]
    numbers = tmp_path / "numbers.jsonl"
    numbers.write_text('{"tokens": ["李", "雷"], "ner_tags": [1, 2]}\n', "utf-8")
    with pytest.raises(Refusal, match="numbers"):
        read(numbers)
    uneven = tmp_path / "uneven.jsonl"
    uneven.write_text(out.read_text("utf-8") + '{"tokens": ["李"], "ner_tags": ["B-X", "O"]}\n', "utf-8")
    assert [s.source.line for s in read(uneven).skipped] == [4]
