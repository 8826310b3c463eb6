"""Damaged files give rows or a refusal, and no row goes missing (benchmarks/mutations.py does the same for 10,000)."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from fitune.data import read
from fitune.values import Refusal

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "mutations.py"


@pytest.fixture(scope="module")
def mutations():
    spec = importlib.util.spec_from_file_location("mutations", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutations"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutations"]


@pytest.mark.parametrize("part", range(6))
def test_mutations(mutations, part, tmp_path):
    outcome = mutations.run(50, 7, tmp_path, first=50 * part)
    assert outcome["rows"] > 0
    assert sum(outcome.values()) == 50


def test_bytes_that_are_no_text_are_counted(tmp_path):
    path = tmp_path / "a.txt"
    lines = ["好 O", "的 O", "", "X O", "京 B-LOC", "", "行 O"] * 20
    path.write_bytes("\n".join(lines).encode().replace(b"X", b"\xed\xa0\xbd", 1))
    rows = read(path)
    assert [s.source.line for s in rows.skipped] == [4]
    assert "0xED" in rows.skipped[0].reason
    assert rows.rows_in_file == len(rows.examples) + 1


def test_no_encoding_fits(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"text\n\xff\xff\xfe\x80\xff\n\x80\x81\xff\xff\n")
    with pytest.raises(Refusal) as refusal:
        read(path)
    assert refusal.value.where == f"{path}:2"
    assert "5" in refusal.value.found
    assert "UTF-8" in refusal.value.next_step


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\x80\xfe\n", "PNG"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\xff\x80\n", "PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff\0" * 90, "XLS"),
        (bytes(range(256)) * 40, "binary data"),
    ],
)
def test_files_that_are_no_text_get_no_advice_for_text(tmp_path, content, kind):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(Refusal) as refusal:
        read(path)
    assert kind in refusal.value.found
    assert refusal.value.code == "FT191"
    assert "iconv" not in refusal.value.next_step


def test_joined_files_of_two_encodings_are_told_and_the_command_mends_them(tmp_path):
    path = tmp_path / "a.csv"
    first = "".join(f"这个很好{i},好\n" for i in range(30)).encode()
    path.write_bytes(b"text,label\n" + first + "".join(f"这个不行{i},坏\n" for i in range(40)).encode("gb18030"))
    with pytest.raises(Refusal) as refusal:
        read(path)
    assert "line 2 is utf-8" in refusal.value.found
    assert "line 32 is gb18030" in refusal.value.found
    program = refusal.value.next_step.partition("python -c ")[2].strip('"')
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    assert [e.labels for e in read(tmp_path / "fixed.csv").examples] == [("好",)] * 30 + [("坏",)] * 40


def test_a_copy_that_was_broken_off_is_told_as_that(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\n很好,好\n".encode("utf-16")[:-1])
    with pytest.raises(Refusal, match="broken off"):
        read(path)


@pytest.mark.parametrize(
    "line",
    ["[" * 100_000, '{"text": ' + "9" * 5000 + "}", '{"text": NaN}', '{"text": "\\ud83d", "label": 1}', "null", "{"],
)
def test_json_that_hurts(line, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "好", "label": "1"}\n' * 3 + line + "\n", "utf-8")
    rows = read(path)
    assert len(rows.examples) == 3
    assert [s.source.line for s in rows.skipped] == [4]


@pytest.mark.parametrize("separator", ["\t", " ", ",", "  ", " \t"])
def test_columns_with_any_separator(separator, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(
        "\n".join(f"{c}{separator}{t}" for c, t in zip("小满在", ["B-P", "I-P", "O"], strict=True)), "utf-8"
    )
    rows = read(path)
    assert rows.format.name == "columns"
    assert rows.examples[0].text == "小满在"


def test_odd_characters_are_kept(tmp_path):
    """NBSP, U+3000, zero width, private use and NUL are the user's text, U+FEFF too; the mark of the file is not."""
    text = "a\u00a0b\u3000c\u200bd\ue000e\0f\u2028g\x85h"
    path = tmp_path / "a.tsv"
    path.write_text(f"text\tlabel\n\ufeff甲\t1\n{text}\t0\n乙\t1", "utf-8-sig")
    rows = read(path)
    assert rows.examples[1].text == text
    assert rows.format.encoding == "utf-8-sig"
    assert rows.examples[0].text == "\ufeff甲"
    path.write_text(f"0\t{text}\n1\t乙\n0\t丙", "utf-8-sig")
    assert read(path).labels == ("0", "1")
    path.write_text(f"\ufeff0\t{text}\n1\t乙\n0\t丙", "utf-8-sig")
    assert read(path).labels == ("0", "1")


def test_one_bad_quote_late_in_the_file_swallows_nothing(tmp_path):
    path = tmp_path / "a.csv"
    lines = [
        "label,text",
        *(f'{i % 2},"第{i}条，有逗号, 有""引号"""' for i in range(50)),
        '1,"没有关上',
        *("0,正常",) * 50,
    ]
    path.write_text("\n".join(lines), "utf-8")
    rows = read(path)
    assert len(rows.examples) == 101
    assert rows.examples[-1].text == "正常"
