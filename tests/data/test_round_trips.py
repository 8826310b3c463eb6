"""Any text and any spans, written in any format that can hold them and read back, are the same."""

import string
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fitune.data import Format, read, write
from fitune.values import Example, Refusal, Span

CHARACTERS = st.one_of(
    st.sampled_from(
        "我在南京等船，。！《》“”…—·　\u00a0 \u200b\u200d\ufeff🙂👨‍👩‍👧é\u0301ｱ１ABab09\"',;|/\\{}[]:<>&=\t"
    ),
    st.characters(exclude_categories=("Cs",), exclude_characters="\n\r\0"),
)
TEXTS = st.text(CHARACTERS, min_size=1, max_size=30).filter(lambda text: not text.isspace())
LABELS = st.text(string.ascii_letters + "人名地点", min_size=1, max_size=5)


@st.composite
def ner_examples(draw: st.DrawFn) -> Example:
    text = draw(TEXTS)
    spans: list[Span] = []
    position = 0
    for _i in range(draw(st.integers(0, 3))):
        if position >= len(text):
            break
        start = draw(st.integers(position, len(text) - 1))
        end = draw(st.integers(start + 1, min(len(text), start + 6)))
        spans.append(Span(start, end, draw(st.sampled_from(["PER", "LOC.NAM", "地点"]))))
        position = end
    return Example(text, tuple(spans))


@st.composite
def class_examples(draw: st.DrawFn) -> Example:
    return Example(draw(TEXTS), None, (draw(LABELS),))


def bare(example: Example) -> tuple[object, ...]:
    return example.text, example.spans, example.labels, example.text_pair


def round_trip(examples: list[Example], format: Format) -> None:
    """Reading gives what was written, or writing was refused: nothing is changed in silence."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.txt"
        try:
            write(path, examples, format)
        except Refusal:
            assert not path.exists() or format.name == "parallel"
            return
        rows = read(path, format=format)
    assert [s.reason for s in rows.skipped] == []
    assert list(map(bare, rows.examples)) == list(map(bare, examples))


def columns(**details: object) -> Format:
    plain = {"separator": "\t", "columns": 2, "tag_column": 1, "scheme": "BIO", "mark": "-", "joiner": ""}
    return Format(name="columns", task="ner", details={**plain, **details})


SPANS = {"container": "lines", "text": "text", "spans": "entities", "shape": "lists"}
OBJECTS = {"shape": "objects", "start": "start", "end": "end", "label": "type", "mention": "mention"}
NER_FORMATS = {
    "cluener": Format(name="cluener", task="ner", details={"ends": "inclusive", "container": "lines"}),
    "cluener-array": Format(name="cluener", task="ner", details={"ends": "exclusive", "container": "array"}),
    "spans": Format(name="spans", task="ner", details=SPANS),
    "spans-label-first": Format(name="spans", task="ner", details={**SPANS, "label_first": True}),
    "spans-utf16": Format(name="spans", task="ner", details={**SPANS, **OBJECTS, "unit": "utf16"}),
    "spans-pretty": Format(name="spans", task="ner", details={**SPANS, **OBJECTS, "container": "concatenated"}),
    "label-studio": Format(
        name="label-studio",
        task="ner",
        details={"container": "array", "text": "text", "kind": "annotations", "unit": "utf16"},
    ),
    "columns": columns(),
    "columns-bmes": columns(separator=" ", scheme="BMES"),
    "columns-iob1": columns(separator=",", scheme="IOB1", columns=4, tag_column=3),
    "columns-bioes": columns(separator="blanks", scheme="BIOES", columns=3, tag_column=1, mark="_"),
    "columns-positions": columns(positions=True),
    "tag-cells": Format(
        name="tag-cells",
        task="ner",
        details={"separator": "\t", "tag_column": 1, "scheme": "BIO", "mark": "-", "joiner": "", "header": ["a", "b"]},
    ),
    "parallel": Format(
        name="parallel", task="ner", details={"characters": False, "scheme": "BIO", "mark": "-", "joiner": ""}
    ),
    "parallel-characters": Format(
        name="parallel", task="ner", details={"characters": True, "scheme": "BIO", "mark": "-", "joiner": ""}
    ),
    "word-tag": Format(name="word-tag", task="ner", details={"entities": ["PER", "LOC.NAM", "地点"], "merge": False}),
    "inline": Format(name="inline", task="ner"),
}
TABLE = {"width": 2, "text": 0, "text_pair": None, "label": 1}


def table(name: str, **details: object) -> Format:
    return Format(name=name, task="classification", details={**TABLE, **details})


CLASS_FORMATS = {
    "csv": table("csv", separator=",", quoting=True, header=["text", "label"]),
    "tsv-no-quotes": table("tsv", separator="\t", quoting=False, header=None),
    "label-first": table("csv", text=1, label=0, separator=",", quoting=False, label_longest=5),
    "json": table("json", container="lines", text="t", label="y"),
    "json-array": table("json", container="array", text="t", label="y"),
    "fasttext": Format(name="fasttext", task="classification", details={"labels": "before"}),
    "fasttext-behind": Format(name="fasttext", task="classification", details={"labels": "behind"}),
    "excel": table("excel", header=["text", "label"]),
    "parquet": table("parquet", header=["text", "label"]),
}
MANY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", NER_FORMATS)
@MANY
@given(examples=st.lists(ner_examples(), min_size=1, max_size=4))
def test_ner_round_trip(name, examples):
    round_trip(examples, NER_FORMATS[name])


@pytest.mark.parametrize("name", CLASS_FORMATS)
@MANY
@given(examples=st.lists(class_examples(), min_size=1, max_size=4))
def test_classification_round_trip(name, examples):
    round_trip(examples, CLASS_FORMATS[name])


@pytest.mark.parametrize("name", NER_FORMATS)
def test_ordinary_chinese_can_be_written_everywhere(name, tmp_path):
    """The round trips above may be refusals; these must not be."""
    examples = [Example("小满在iPhone店等A座🙂", (Span(0, 2, "PER"), Span(10, 12, "LOC.NAM"))), Example("雨停了。", ())]
    write(tmp_path / "file.txt", examples, NER_FORMATS[name])
    assert list(map(bare, read(tmp_path / "file.txt", format=NER_FORMATS[name]).examples)) == list(map(bare, examples))


@pytest.mark.parametrize("character", ["\ufffe", "\uffff"])
def test_what_no_excel_file_can_hold_is_refused_when_written(character: str) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.raises(Refusal, match="Excel cell"):
        write(Path(folder) / "a.xlsx", [Example(f"a{character}b", None, ("x",))], CLASS_FORMATS["excel"])
