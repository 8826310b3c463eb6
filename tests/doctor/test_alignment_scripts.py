"""How people really write three mistakes (O as -100, ends left out, the model moved), and what only looks like them."""

import json
from pathlib import Path

import pytest

from fitune.doctor import diagnose, diagnose_log, diagnose_script
from fitune.values import Refusal

FOLDER = Path(__file__).parent / "scripts"
TEXT = "浙商银行企业信贷部叶老桂博士"
LOOKED_FOR = {"FT801", "FT802", "FT815"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Data files of several shapes."""
    folder = tmp_path_factory.mktemp("place")
    dictionary = {"text": "叶老桂", "type": "name", "start": 9}
    rows = {
        "train.json": {"label": {"name": {"叶老桂": [[9, 11]]}}},
        "spans.json": {"entities": [[9, 11, "name"], [3, 3, "name"]]},
        "dicts.json": {"entities": [{**dictionary, "end": 11}]},
        "open.json": {"entities": [[9, 12, "name"], [12, 14, "name"]]},
        "open_dicts.json": {"entities": [{**dictionary, "end": 12}]},
    }
    for name, row in rows.items():
        line = json.dumps({"text": TEXT, **row}, ensure_ascii=False) + "\n"
        (folder / name).write_text(line * 8, encoding="utf-8")
    return folder


def blocks(name):
    for block in (FOLDER / name).read_text(encoding="utf-8").split("=== ")[1:]:
        head, script = block.split("\n", 1)
        title, *rest = head.split(" | ", 2)
        yield pytest.param(*rest, script, id=title)


@pytest.mark.parametrize(("code", "line", "script"), blocks("alignment_mistakes.txt"))
def test_a_mistake_is_found_as_people_write_it(code, line, script, place):
    found = diagnose_script(script, "t.py", folder=place)
    assert any(f.code == code and any(line in e for e in f.evidence) for f in found.findings), found.findings
    assert {f.code for f in found.findings} & LOOKED_FOR == {code}
    if found.mended is not None:
        again = diagnose_script(found.mended, "t.py", folder=place)
        left = [f for f in again.findings if f.code == code]
        assert not left or len(left) < len([f for f in found.findings if f.code == code]), found.mended


@pytest.mark.parametrize("script", [pytest.param(*p.values, id=p.id) for p in blocks("alignment_healthy.txt")])
def test_what_only_looks_like_a_mistake_is_left_alone(script, place):
    found = diagnose_script(script, "t.py", folder=place)
    assert {f.code for f in found.findings} & LOOKED_FOR == set(), found.findings


def test_the_mended_split_has_a_seed_and_the_count_follows_the_list():
    source = """labels = ["O", "B-name", "I-name", "B-book", "I-book"]
ds = ds.train_test_split(test_size=0.1, shuffle=False)
train, dev = train_test_split(rows, shuffle=False)
model = AutoModelForTokenClassification.from_pretrained(CK, num_labels=3)
"""
    mended = diagnose_script(source).mended
    assert "train_test_split(test_size=0.1, seed=42)" in mended
    assert "train_test_split(rows, random_state=42)" in mended
    assert "num_labels=len(labels)" in mended


@pytest.mark.parametrize(
    ("raw", "word"), [(b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "PNG"), (bytes(range(256)) * 9, "text")]
)
def test_bytes_that_are_no_text_are_refused(raw, word, tmp_path):
    path = tmp_path / "error.log"
    path.write_bytes(raw)
    with pytest.raises(Refusal, match=word):
        diagnose(str(path))


def test_a_training_that_ended_is_said_to_have_ended():
    log = "{'loss': 0.5, 'epoch': 1.0}\n{'train_runtime': 12.3, 'epoch': 1.0}\n"
    found = diagnose_log(log)
    assert found.ended_well
    assert "ended as it should" in found.advice()
    assert not diagnose_log("starting\n").ended_well
