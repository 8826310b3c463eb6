"""fastText lines: labels are words that begin with __label__."""

from pathlib import Path

import pytest

from fitune.data import Format, read, stream, write
from fitune.values import Example, Prediction, Refusal


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_labels_before_the_text_one_or_several(tmp_path: Path) -> None:
    one = read(written(tmp_path / "a.txt", "__label__好 真 不错", "__label__坏\t不行", "__label__好  还行 "))
    assert (one.format.name, one.multi_label) == ("fasttext", False)
    assert [(e.text, e.labels) for e in one.examples] == [("真 不错", ("好",)), ("不行", ("坏",)), ("还行 ", ("好",))]
    several = read(written(tmp_path / "b.csv", "__label__a __label__b 一, 二", "__label__a 三, 四"))
    assert (several.multi_label, several.examples[0].labels) == (True, ("a", "b"))


def test_labels_behind_the_text(tmp_path: Path) -> None:
    rows = read(written(tmp_path / "a.txt", "真不错 __label__好", "不行 __label__坏 __label__差", "还行 __label__好"))
    assert [(e.text, e.labels) for e in rows.examples][1] == ("不行", ("坏", "差"))
    write(tmp_path / "b.txt", rows.examples, rows.format)
    assert (tmp_path / "b.txt").read_text("utf-8").splitlines()[0] == "真不错 __label__好"


def test_rows_without_a_label_or_a_text_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", *("__label__好 真不错",) * 20, "没有标签", "__label__坏")
    assert [s.source.line for s in read(path).skipped] == [21, 22]
    assert [e.text for e in stream(path)][-1] == "没有标签"


def test_what_would_be_read_otherwise_is_refused(tmp_path: Path) -> None:
    format = Format(name="fasttext", task="classification", details={"labels": "before"})
    for example in (
        Example("好", None, ("两 词",)),
        Example("__label__x 好", None, ("a",)),
        Example(" 好", None, ("a",)),
        Example("好", None, ()),
    ):
        with pytest.raises(Refusal):
            write(tmp_path / "a.txt", [example], format)
    write(tmp_path / "a.txt", [Prediction("好", None, ()), Prediction("坏", None, ("b",), {"b": 0.9})], format)
    assert (tmp_path / "a.txt").read_text("utf-8") == "好\n__label__b 坏\n"
