"""CTranslate2: the trained model's logits and entities from a converted encoder, or nothing at all."""

import json
import shutil

import pytest

from fitune import Predictor
from fitune.predicting import export
from fitune.values import Refusal
from tests.predicting.models import make_model, texts, write_gold

pytest.importorskip("ctranslate2")


def bare(predictions):
    return [(p.labels, [(s.start, s.end, s.label) for s in p.spans or ()]) for p in predictions]


@pytest.fixture(scope="module", params=["ner-crf", "classification-pairs"])
def exported(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    task, _, kind = request.param.partition("-")
    pairs = kind == "pairs"
    model = make_model(folder, task=task, head="crf" if kind == "crf" else "softmax", pairs=pairs)
    seconds = [text[:9] for text in texts()] if pairs else None
    gold = write_gold(folder / "dev.jsonl", Predictor(model)(texts(), seconds), seconds)
    return model, seconds, *export(model, folder / "out", to="ctranslate2", int8=True, max_drop=100, dev=str(gold))


def test_fp32_is_the_trained_model_and_int8_is_compared(exported):
    model, seconds, folder, (exact, small) = exported
    assert (exact.engine, small.engine) == ("ctranslate2", "ctranslate2-int8")
    assert exact.rows == small.rows == 60
    assert exact.largest_logit_difference < 1e-4
    assert exact.rows_with_other_predictions == 0
    assert small.largest_logit_difference > exact.largest_logit_difference
    through = Predictor(folder)
    assert through.engine == "ctranslate2"
    assert bare(Predictor(model)(texts(), seconds)) == bare(through(texts(), seconds))


def test_a_damaged_part_is_named(exported, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(exported[2], folder)
    path = folder / "ctranslate2" / "model.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Refusal, match="damaged") as refused:
        Predictor(folder)
    assert refused.value.where.endswith("model.bin")


def test_other_types_and_formats_are_refused(tmp_path):
    from fitune.predicting.ctranslate import convert
    from fitune.tasks import load

    saved = load(make_model(tmp_path))
    saved.learner.model.config.model_type = "electra"
    with pytest.raises(Refusal) as refused:
        convert(saved, tmp_path, ("float32",))
    assert refused.value.code == "FT716"
    with pytest.raises(Refusal, match="no format"):
        export(tmp_path / "model", tmp_path / "out", to="tflite")
    assert not (tmp_path / "out").exists()


def test_settings_name_every_file(exported):
    folder = exported[2]
    files = json.loads((folder / "fitune.json").read_text(encoding="utf-8"))["files"]
    assert {"ctranslate2/model.bin", "ctranslate2-int8/model.bin", "head.safetensors", "tokenizer.json"} <= set(files)


def test_the_run_takes_the_fastest_exact_engine_that_was_measured_here(tmp_path):
    model = make_model(tmp_path)
    gold = write_gold(tmp_path / "dev.jsonl", Predictor(model)(texts(8)))
    folder, _comparisons = export(model, to="ctranslate2", int8=True, max_drop=100, dev=str(gold))
    assert folder == tmp_path / "ctranslate2"

    def told(**changes):
        facts = json.loads((folder / "export.json").read_text(encoding="utf-8"))
        speeds = changes.pop("speeds", None)
        for comparison, speed in zip(facts["comparisons"], speeds or (), strict=False):
            comparison["times_as_fast"] = speed
        (folder / "export.json").write_text(json.dumps(facts | changes), encoding="utf-8")
        return Predictor(model).engine

    assert told(speeds=(1.2, 3.0)) == "ctranslate2"  # never int8 by itself
    assert told(speeds=(1.0, 3.0)) == "torch"
    assert told(speeds=(1.2, 3.0), machine="another") == "torch"
    assert Predictor(model, engine="ctranslate2-int8").engine == "ctranslate2-int8"
    assert told(source="other weights") == "torch"
    with pytest.raises(Refusal) as refused:
        Predictor(model, engine="ctranslate2")
    assert refused.value.code == "FT711"
    assert "--to ctranslate2" in refused.value.next_step
