"""Predictor: slices of the source, input order, any length, one at a time or together; damage is named."""

import json

import pytest

from fitune import Predictor
from fitune.values import Example, Refusal
from tests.predicting.models import make_model, texts


@pytest.fixture(scope="module")
def ner(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("ner"))


@pytest.fixture(scope="module")
def crf(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("crf"), head="crf")


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("classes"), task="classification")


def same(a, b):
    assert a.text == b.text
    if a.spans is not None:
        assert [(s.start, s.end, s.label) for s in a.spans] == [(s.start, s.end, s.label) for s in b.spans]
        assert [s.score for s in a.spans] == pytest.approx([s.score for s in b.spans], abs=1e-5)
    else:
        assert a.labels == b.labels
        assert a.scores == pytest.approx(b.scores, abs=1e-5)


@pytest.mark.parametrize("model", ["ner", "crf", "classes"])
def test_together_equals_one_at_a_time_in_the_order_asked(model, request):
    predictor = Predictor(request.getfixturevalue(model))
    asked = texts()
    together = predictor(asked)
    assert [p.text for p in together] == asked
    for text, found in zip(asked, together, strict=True):
        same(found, predictor(text))
    for found, streamed in zip(together, predictor.stream(Example(t) for t in asked), strict=True):
        same(found, streamed)


def test_entities_are_slices_and_lie_in_long_texts_too(ner):
    found = Predictor(ner)("甲乙丙，" * 60)
    assert found.spans
    assert max(s.end for s in found.spans) > 150, "nothing found beyond the first windows"
    for entity in found.to_json()["entities"]:
        assert entity["text"] == found.text[entity["start"] : entity["end"]]


@pytest.mark.parametrize("text", ["", " ", "😀", "\u200d", "\0", "ABC", "一" * 500, "한국어", "e\u0301"])
def test_any_text_has_an_answer(ner, classes, text):
    assert Predictor(ner)(text).text == text
    assert Predictor(classes)(text).labels


def test_nothing_in_nothing_out(ner):
    assert Predictor(ner)([]) == []


def test_pairs_are_asked_for_and_only_where_they_belong(tmp_path, classes):
    pairs = Predictor(make_model(tmp_path / "pairs", task="classification", pairs=True))
    assert pairs("一二", "三四").text_pair == "三四"
    assert [p.text_pair for p in pairs(["一", "二"], ["三", "四"])] == ["三", "四"]
    with pytest.raises(Refusal, match="pairs"):
        pairs("一二")
    with pytest.raises(Refusal, match="single"):
        Predictor(classes)("一二", "三四")
    with pytest.raises(ValueError, match="2 texts but 1"):
        pairs(["一", "二"], ["三"])


def test_gold_of_unknown_labels_plays_no_part(ner):
    from fitune.values import Span

    example = Example("一二三", spans=(Span(0, 1, "never seen"),))
    assert Predictor(ner)([example])[0].text == "一二三"


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["missing", "cut", "flipped"])
def test_a_damaged_folder_is_refused_with_the_files_name(tmp_path, name, damage):
    folder = make_model(tmp_path)
    path = folder / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    with pytest.raises(Refusal) as refused:
        Predictor(folder)
    assert name in str(refused.value)


def test_folders_without_a_model_say_what_is_missing(tmp_path):
    with pytest.raises(Refusal, match="no such folder"):
        Predictor(tmp_path / "nowhere")
    with pytest.raises(Refusal, match="no trained model"):
        Predictor(tmp_path)
    (tmp_path / "events.jsonl").write_text("")
    with pytest.raises(Refusal, match="no model yet"):
        Predictor(tmp_path)


def test_an_unknown_engine_and_a_missing_export(ner):
    with pytest.raises(Refusal, match="no engine"):
        Predictor(ner, engine="magic")
    with pytest.raises(Refusal, match=r"model\.onnx"):
        Predictor(ner, engine="onnx")


def test_describe_shows_examples_of_the_development_set(ner):
    rows = [{"text": "一二"}, {"text": "三四", "entities": [{"start": 0, "end": 1, "label": "place"}]}]
    path = ner.parent / "dev-predictions.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    described = Predictor(ner).describe()
    assert described["labels"] == ["person", "place"]
    assert [e["text"] for e in described["examples"]] == ["三四", "一二"]
    path.unlink()
    assert Predictor(ner).describe()["examples"] == []


def test_a_stream_takes_plain_texts(ner):
    predictor = Predictor(ner)
    assert [p.text for p in predictor.stream(["一二", Example("三四")])] == ["一二", "三四"]


def test_a_stream_holds_one_chunk_whatever_comes(tmp_path, monkeypatch):
    """Rows are asked for only when the ones before are out, and are not kept."""
    import gc
    import weakref

    from fitune.predicting import predictor as module

    monkeypatch.setattr(module, "STREAMED_EXAMPLES", 8)
    predictor = Predictor(make_model(tmp_path))
    alive = weakref.WeakSet()

    class Row(Example):
        """An Example that can be watched."""

        __slots__ = ("__weakref__",)

    def rows():
        for number in range(200):
            row = Row(texts(40)[number % 40])
            alive.add(row)
            yield row

    most = 0
    for count, _prediction in enumerate(predictor.stream(rows()), 1):
        if count % 20 == 0:
            gc.collect()
            most = max(most, len(alive))
    assert count == 200
    assert most <= 16
