"""The linear baseline: same split, same scorer, no torch."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pycrfsuite")

from fitune.training.baselines import _character_features, baseline, baseline_of
from fitune.training.splits import Splits, read_splits
from fitune.values import Example, Job, Refusal, Span

CITIES = ["北京", "上海", "广州", "成都", "武汉", "南京", "杭州", "西安"]
VERBS = ["去了", "来到", "离开", "喜欢", "想念"]


@pytest.fixture
def ner_file(tmp_path):
    path = tmp_path / "train.jsonl"
    lines = []
    for number in range(120):
        city, verb = CITIES[number % 8], VERBS[number % 5]
        text = f"第{number}天我{verb}{city}玩"
        start = text.index(city)
        lines.append(json.dumps({"text": text, "entities": [[start, start + 2, "LOC"]]}, ensure_ascii=False))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def classes_file(tmp_path):
    path = tmp_path / "train.tsv"
    rows = [f"{'正面' if n % 2 else '负面'}\t{'味道很好' if n % 2 else '非常难吃'}，第{n}次点" for n in range(120)]
    path.write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_entities(ner_file, capfd):
    seen = []
    scores = baseline(Job(train=str(ner_file), task="ner"), lambda done, most: seen.append((done, most)))
    assert set(scores) == {"dev"}
    assert scores["dev"]["f1"] > 0.95
    assert seen
    assert all(done <= most for done, most in seen)
    assert capfd.readouterr().out == ""


def test_classes(classes_file):
    scores = baseline(Job(train=str(classes_file)))
    assert scores["dev"]["accuracy"] == 1
    assert 0 <= scores["dev"]["macro_f1"] <= 1


def test_the_same_job_gives_the_same_figures(classes_file):
    job = Job(train=str(classes_file), test=str(classes_file))
    first = baseline(job)
    assert set(first) == {"dev", "test"}
    assert first == baseline(job)


def splits_of(train, dev, labels):
    return Splits(train, dev, None, None, labels, dev_is_split_off=False)


def test_several_labels_a_row_and_a_class_that_never_or_always_occurs():
    train = [
        Example(f"{'便宜' if n % 2 else '贵'}的手机{n}", labels=("手机", "便宜") if n % 2 else ("手机",))
        for n in range(40)
    ]
    dev = [Example("很便宜的手机", labels=("手机", "便宜")), Example("太贵的手机", labels=("手机",))]
    scores = baseline_of(splits_of(train, dev, ("手机", "便宜", "退货")), "classification", multi_label=True)["dev"]
    assert scores["f1"] == 1
    assert scores["accuracy"] == 1


def test_pairs_of_texts():
    train = [
        Example(a, text_pair=b, labels=("同",) if a == b else ("异",))
        for a in CITIES
        for b in CITIES
        for _copy in range(2)
    ]
    scores = baseline_of(splits_of(train, train, ("同", "异")), "classification")["dev"]
    assert scores["accuracy"] > 0.9


def test_one_class_is_answered_with_that_class():
    train = [Example("好", labels=("是",)), Example("很好", labels=("是",))]
    dev = [Example("好", labels=("是",)), Example("坏", labels=("否",))]
    assert baseline_of(splits_of(train, dev, ("是", "否")), "classification")["dev"]["accuracy"] == 0.5


def test_empty_text_and_nested_spans():
    train = [Example("我在北京大学", spans=(Span(2, 6, "ORG"), Span(2, 4, "LOC")))] * 5 + [Example("", spans=())]
    scores = baseline_of(splits_of(train, train, ("ORG", "LOC")), "ner")["dev"]
    assert scores["f1"] == 1, "the outer span is what counts"


@pytest.mark.parametrize("text", ["", "a", "İstanbul", "😀é\u3000"])
def test_one_set_of_features_a_character(text):
    assert len(list(_character_features(text))) == len(text)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(Refusal):
        baseline(Job(train=str(tmp_path / "missing.json")))


def test_one_class_is_refused_as_training_refuses_it(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("text,label\n" + "".join(f"第{n}个,好\n" for n in range(20)), encoding="utf-8")
    with pytest.raises(Refusal) as refusal:
        baseline(Job(train=str(path)))
    assert (refusal.value.code, refusal.value.where) == ("FT130", str(path))
    assert "好" in refusal.value.found


def test_rows_without_labels_are_a_finding_and_are_looked_at_no_further(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"text": f"第{n}个好人", "entities": [[3, 4, "X"]]} for n in range(20)]
    for row in rows[::2]:
        del row["entities"]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    for job in (Job(train=str(path)), Job(train=str(path), dev=str(path))):
        splits = read_splits(job)
        assert {finding.code for finding in splits.findings} == {"FT117"}
        assert splits.findings[0].title == "train: 10 of 20 rows have no label"
        assert splits.findings[0].evidence[0].startswith(f"{path}:1: ")
        assert all(e.spans is not None for rows in splits.rows_by_split.values() for e in rows.examples)


def test_entities_of_which_no_row_has_one_are_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "第{n}个", "entities": []}}\n' for n in range(20)), encoding="utf-8")
    with pytest.raises(Refusal) as refusal:
        read_splits(Job(train=str(path)))
    assert refusal.value.code == "FT131"


def test_loads_no_torch(classes_file):
    script = (
        "import sys; from fitune.training import baseline; from fitune.values import Job;"
        f"baseline(Job(train={str(classes_file)!r})); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_scores_the_split_that_training_uses(classes_file):
    job = Job(train=str(classes_file))
    splits = read_splits(job)
    assert baseline_of(splits, "classification") == baseline(job)
