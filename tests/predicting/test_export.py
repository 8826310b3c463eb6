"""Export: the same logits and scores, or nothing at all."""

import importlib
import json
import subprocess
import sys

import pytest
import torch

from fitune import Predictor
from fitune.predicting import export
from fitune.tasks import load, save
from fitune.values import Refusal
from tests.predicting.models import make_model, texts, write_gold

pytest.importorskip("onnxruntime")
exporting = importlib.import_module("fitune.predicting.export")


@pytest.fixture(scope="module", params=["ner-softmax", "ner-crf", "classification"])
def exported(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    task, _, head = request.param.partition("-")
    model = make_model(folder, task=task, head=head or "softmax")
    gold = write_gold(folder / "dev.jsonl", Predictor(model)(texts()))
    return model, gold, *export(model, folder / "out", dev=str(gold))


def test_the_exported_model_is_the_trained_one(exported):
    model, _gold, folder, (comparison,) = exported
    assert comparison.rows == 60
    assert comparison.largest_logit_difference < 1e-4
    assert comparison.rows_with_other_predictions == 0
    assert comparison.exported_score == comparison.torch_score == 1.0
    trained, through_onnx = Predictor(model), Predictor(folder)
    assert through_onnx.engine == "onnx"
    for a, b in zip(trained(texts(20)), through_onnx(texts(20)), strict=True):
        assert (a.spans is None, a.labels) == (b.spans is None, b.labels)
        assert [(s.start, s.end, s.label) for s in a.spans or ()] == [(s.start, s.end, s.label) for s in b.spans or ()]


def run_example(folder, arguments):
    """Answers of the folder's example in a process that has neither torch, transformers nor fitune."""
    names = ("torch", "transformers", "fitune")
    forbid = f"import sys; sys.modules.update(dict.fromkeys({names})); __file__ = {str(folder / 'example.py')!r}; "
    code = forbid + "sys.argv = ['example.py', *sys.argv[1:]]; exec(open(__file__, encoding='utf-8').read())"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def as_example(prediction):
    """What the example prints of a prediction: no scores."""
    plain = prediction.to_json()
    plain.pop("scores", None)
    for entity in plain.get("entities", ()):
        entity.pop("score", None)
    return plain


SHORT = [text for text in texts(120) if len(text) <= 30]
ODD = ["", " ", "一 二\t三", "一\u0301二\u0301", "[CLS]一[SEP]二", "“一”——二…", "😀一", "  甲乙丙  丁 ", "A一b二"]


def test_the_example_finds_what_predict_finds(exported):
    model, _gold, folder, _comparisons = exported
    assert len({path.stat().st_mode for path in folder.rglob("*") if path.is_file()}) == 1
    answers, told = run_example(folder, [*SHORT, *ODD])
    expected = [as_example(p) for p in Predictor(model)([*SHORT, *ODD])]
    assert answers == expected
    assert not told
    assert sum(len(one.get("entities") or one.get("labels") or ()) for one in expected) > 50


def test_the_example_says_when_it_reads_only_the_beginning(exported):
    answers, told = run_example(exported[2], ["一二三四五" * 20])
    assert len(answers) == 1
    assert "only the first 32 tokens" in told


@pytest.mark.parametrize("kind", ["pairs", "multi_label"])
def test_the_example_of_other_classifiers(tmp_path, kind):
    model = make_model(tmp_path, task="classification", **{kind: True})
    saved = load(model)
    settings = saved.settings.model_copy(
        update={"normalize_quotes": True}
        | ({"thresholds": {"no": 0.2, "yes": 0.8, "maybe": 0.5}} if kind == "multi_label" else {})
    )
    save(model, saved.learner, saved.tokenizer, settings)
    seconds = [text[:9] for text in SHORT] if kind == "pairs" else None
    firsts = [text[:20] for text in SHORT]
    gold = tmp_path / "dev.jsonl"
    predictor = Predictor(model)
    rows = [
        {"text": text, "label": "no" if seconds else ["no"]} | ({"text_pair": seconds[i]} if seconds else {})
        for i, text in enumerate(firsts)
    ]
    gold.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    folder, _comparisons = export(model, tmp_path / "out", dev=str(gold))
    arguments = [one for pair in zip(firsts, seconds, strict=True) for one in pair] if seconds else firsts
    answers, _told = run_example(folder, arguments)
    assert answers == [as_example(p) for p in predictor(firsts, seconds)]


@pytest.mark.parametrize(("to", "package"), [("onnx", "onnxruntime"), ("ctranslate2", "ctranslate2")])
def test_a_missing_package_names_what_was_typed(tmp_path, monkeypatch, to, package):
    model = make_model(tmp_path)
    gold = write_gold(tmp_path / "dev.jsonl", Predictor(model)(texts(8)))
    there = sorted(p.name for p in tmp_path.iterdir())
    monkeypatch.setattr(exporting, "find_spec", lambda name: None if name == package else object())
    with pytest.raises(Refusal) as refused:
        export(model, to=to, dev=str(gold))
    assert (refused.value.code, refused.value.where) == ("FT712", f"--to {to}")
    assert package in refused.value.found
    assert sorted(p.name for p in tmp_path.iterdir()) == there


def test_no_refusal_names_the_folder_that_is_written_aside(tmp_path, monkeypatch):
    model = make_model(tmp_path)
    gold = write_gold(tmp_path / "dev.jsonl", Predictor(model)(texts(8)))

    def broken(saved, path):
        raise Refusal(f"no room in {path.parent}", where=str(path), next_step=f"Empty {path.parent}", code="FT709")

    monkeypatch.setattr(exporting, "write_onnx", broken)
    with pytest.raises(Refusal) as refused:
        export(model, tmp_path / "out", dev=str(gold))
    target = tmp_path / "out"
    assert refused.value.where == str(target / "model.onnx")
    assert str(refused.value) == f"{target / 'model.onnx'}: no room in {target}\nEmpty {target}"


def test_the_card_tells_how_it_was_checked(exported):
    _model, _gold, folder, _comparisons = exported
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlanguage: zh\n")
    assert "Checked against the trained model" in card
    assert "| onnx | 60 | 0 |" in card


def test_a_damaged_export_is_refused(exported, tmp_path):
    _model, _gold, folder, _comparisons = exported
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    content = (copy / "model.onnx").read_bytes()
    (copy / "model.onnx").write_bytes(content[:-100])
    with pytest.raises(Refusal, match="damaged"):
        Predictor(copy)


def ruin_for_int8(model):
    """The same logits up to rounding, but one large weight per class leaves few int8 steps for the others."""
    saved = load(model)
    net = saved.learner.model
    with torch.no_grad():
        norm = net.bert.encoder.layer[-1].output.LayerNorm
        norm.weight[0], norm.bias[0] = 0.0, 1.0
        net.classifier.weight[:, 0] = 64.0
        net.classifier.bias -= 64.0
    save(model, saved.learner, saved.tokenizer, saved.settings)


def test_int8_that_loses_too_much_is_refused_and_nothing_is_left(tmp_path):
    model = make_model(tmp_path)
    ruin_for_int8(model)
    gold = write_gold(tmp_path / "dev.jsonl", Predictor(model)(texts()))
    with pytest.raises(Refusal) as refused:
        export(model, tmp_path / "out", int8=True, dev=str(gold))
    assert refused.value.code == "FT714"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dev.jsonl", "model", "vocab.txt"]
    _folder, comparisons = export(model, tmp_path / "out", int8=True, dev=str(gold), max_drop=100)
    assert comparisons[1].drop_points > 0.5


def test_rows_to_compare_are_needed(tmp_path):
    model = make_model(tmp_path)
    with pytest.raises(Refusal, match="no labelled rows"):
        export(model, tmp_path / "out")
    unlabelled = tmp_path / "plain.txt"
    unlabelled.write_text("一二三\n", encoding="utf-8")
    with pytest.raises(Refusal, match="no labelled rows"):
        export(model, tmp_path / "out", dev=str(unlabelled))


def test_a_folder_with_something_else_is_not_overwritten(tmp_path):
    model = make_model(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(Refusal, match="something else"):
        export(model, tmp_path / "out", dev="whatever")
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"


def test_the_settings_stay_those_of_the_model(exported):
    model, _gold, folder, _comparisons = exported
    before, after = (json.loads((f / "fitune.json").read_text(encoding="utf-8")) for f in (model, folder))
    assert {k: v for k, v in before.items() if k != "files"} == {k: v for k, v in after.items() if k != "files"}
    assert "model.onnx" in after["files"]
    assert "model.safetensors" not in after["files"]
