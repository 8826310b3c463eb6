"""The HTTP service around a stand-in model: answers, refusals, the token, and what the page may load."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from fastapi.testclient import TestClient

from fitune import Predictor
from fitune.predicting.service import Limits, create_app
from fitune.predicting.serving import choose_token, is_loopback
from fitune.values import Refusal
from tests.predicting.conftest import CapitalFinder
from tests.predicting.models import make_model


@contextmanager
def client(**options):
    with TestClient(create_app(CapitalFinder(), **options), raise_server_exceptions=False) as opened:
        yield opened


def test_entities_are_slices_of_the_source_counted_in_code_points():
    with client() as web:
        text = "😀😀 甲B乙"
        answer = web.post("/predict", json={"text": text}).json()["predictions"]
    assert answer == [{"text": text, "entities": [{"start": 4, "end": 5, "label": "CAP", "score": 1.0, "text": "B"}]}]


def test_order_is_kept_and_scores_filter():
    texts = ["aQ", "", "B", "aQ", "中C文" * 50]
    with client() as web:
        found = web.post("/predict", json={"texts": texts, "min_score": 0.9}).json()["predictions"]
    assert [p["text"] for p in found] == texts
    assert [len(p["entities"]) for p in found] == [0, 0, 1, 0, 50]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": "a", "texts": ["a"]},
        {"texts": "a"},
        {"text": 5},
        {"texts": [None]},
        {"texts": [{"text": "a"}]},
        {"texts": [{"text": "a", "text_pair": 3}]},
        {"text": "a", "min_score": True},
        {"texts": ["a"], "text_pair": "b"},
        {"text": "a", "unknown": 1},
        {"text": "a", "min_score": 2},
        {"texts": [["a"]]},
        [],
        "text",
        None,
    ],
)
def test_bodies_of_another_form_are_refused(body):
    with client() as web:
        assert web.post("/predict", json=body).status_code == 422


def test_half_a_surrogate_pair_is_refused():
    with client() as web:
        answer = web.post("/predict", content=b'{"text": "a\\ud800"}', headers={"content-type": "application/json"})
    assert answer.status_code == 422


def test_invalid_utf8_and_broken_json_are_refused():
    with client() as web:
        for content in (b'{"text": "\xff\xfe"}', b"{", b"\x00" * 10):
            answer = web.post("/predict", content=content, headers={"content-type": "application/json"})
            assert answer.status_code in (400, 422), content


def test_nul_bytes_inside_a_text_are_text():
    with client() as web:
        assert web.post("/predict", json={"text": "a\0B"}).json()["predictions"][0]["entities"][0]["start"] == 2


def test_sizes_over_the_limits_are_413():
    limits = Limits(texts=3, text_characters=10, body_bytes=2000)
    with client(limits=limits) as web:
        assert web.post("/predict", json={"texts": ["a"] * 4}).status_code == 413
        assert web.post("/predict", json={"text": "a" * 11}).status_code == 413
        assert web.post("/predict", json={"texts": ["a" * 3000]}).status_code == 413
        streamed = (b"x" * 100 for _ in range(50))
        assert web.post("/predict", content=streamed).status_code == 413
        assert web.post("/predict", json={"texts": ["a" * 10] * 3}).status_code == 200


def test_a_failing_text_is_500_for_its_request_only():
    with client() as web:
        assert web.post("/predict", json={"text": "poison"}).status_code == 500
        assert web.post("/predict", json={"text": "B"}).status_code == 200


@pytest.mark.parametrize("pairs", [False, True])
def test_what_the_model_refuses_is_422_for_its_request_only(tmp_path, pairs):
    model = make_model(tmp_path, task="classification", pairs=pairs)
    one, two = {"text": "一二"}, {"text": "一二", "text_pair": "三"}
    right, wrong = (two, one) if pairs else (one, two)
    as_item = right if pairs else "一二"
    app = create_app(Predictor(model), limits=Limits(wait_seconds=0.3))
    with TestClient(app, raise_server_exceptions=False) as web, ThreadPoolExecutor(6) as at_once:
        bodies = [right, wrong, right, {"texts": [as_item, "四" if pairs else two, as_item]}, wrong, right]
        answers = list(at_once.map(lambda body: web.post("/predict", json=body), bodies))
        batches = web.get("/metrics").text
    assert [answer.status_code for answer in answers] == [200, 422, 200, 422, 422, 200]
    expected = "the model takes pairs of texts" if pairs else "the model takes single texts"
    assert answers[1].json()["detail"].startswith(f"text: {expected}")
    assert answers[3].json()["detail"].startswith(f"texts[1]: {expected}")
    assert answers[1].json()["detail"].endswith("every text." if pairs else "second text out.")
    assert "fitune_batch_texts_count 1.0" in batches, "the requests were not in one batch"


def test_a_body_that_is_not_sent_as_json_is_told_which_header_it_lacks():
    with client() as web:
        for headers in ({}, {"content-type": "text/plain"}, {"content-type": "application/x-www-form-urlencoded"}):
            answer = web.post("/predict", content=b'{"text": "aB"}', headers=headers)
            assert answer.status_code == 415
            assert "Content-Type: application/json" in answer.json()["detail"]
        for kind in ("application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json"):
            assert web.post("/predict", content=b'{"text": "aB"}', headers={"content-type": kind}).status_code == 200
            assert web.post("/predict", content=b'{"text": 5}', headers={"content-type": kind}).status_code == 422


def test_the_token_guards_everything_but_page_and_health():
    token = "t" * 20
    with client(token=token) as web:
        for path in ("/", "/page/page.js", "/healthz", "/readyz"):
            assert web.get(path).status_code == 200, path
        for path in ("/model", "/metrics", "/docs", "/openapi.json"):
            assert web.get(path).status_code == 401, path
        assert web.post("/predict", json={"text": "B"}).status_code == 401
        assert web.post("/predict", json={"text": "B"}, headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert web.post("/predict", json={"text": "B"}, headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_a_host_that_others_reach_gets_a_token(tmp_path, monkeypatch):
    monkeypatch.delenv("FITUNE_TOKEN", raising=False)
    assert choose_token("127.0.0.1", None) == (None, False)
    made, print_it = choose_token("0.0.0.0", None)
    assert made is not None
    assert len(made) >= 24
    assert print_it
    monkeypatch.setenv("FITUNE_TOKEN", "e" * 16)
    assert choose_token("0.0.0.0", None) == ("e" * 16, False)
    file = tmp_path / "token"
    file.write_text("f" * 20 + "\n")
    assert choose_token("0.0.0.0", str(file)) == ("f" * 20, False)
    for content in ("", "short", "密码密码密码密码密码密码密码密码密码"):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(Refusal):
            choose_token("0.0.0.0", str(file))
    with pytest.raises(Refusal):
        choose_token("0.0.0.0", str(tmp_path / "missing"))


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("192.168.0.2", False),
        ("example", False),
    ],
)
def test_loopback(host, inside):
    assert is_loopback(host) is inside


def test_nothing_is_loaded_from_elsewhere():
    with client() as web:
        for path in ("/", "/page/page.js", "/page/page.css", "/page/words.js", "/docs"):
            answer = web.get(path)
            assert answer.status_code == 200
            assert not re.findall(r"(?:src|href|url\()\s*=?\s*[\"']?https?://", answer.text), path
            assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert web.get("/page/../service.py").status_code == 404


def test_both_languages_of_the_page_have_the_same_words():
    from importlib.resources import files

    source = (files("fitune.predicting") / "page" / "words.js").read_text(encoding="utf-8")
    english, chinese = source.split("  zh: {")
    keys = [set(re.findall(r"(\w+): \"", part)) for part in (english, chinese)]
    assert keys[0] == keys[1]
    assert len(keys[0]) > 30


def test_metrics_count_requests_and_hold_no_text():
    with client() as web:
        web.post("/predict", json={"texts": ["秘密B", "b"]})
        metrics = web.get("/metrics").text
    assert 'fitune_requests_total{status="200"} 1.0' in metrics
    assert "fitune_texts_total 2.0" in metrics
    assert "秘密" not in metrics


def test_metrics_count_every_answer_whoever_gave_it():
    with client(token="t" * 20, limits=Limits(body_bytes=2000, texts=3)) as web:
        anybody = web.post("/predict", json={"text": "B"})
        web.headers["Authorization"] = "Bearer " + "t" * 20
        for body in ({"text": "B"}, {"text": 5}, {"text": "a" * 3000}, {"texts": ["a"] * 4}, {"text": "poison"}):
            web.post("/predict", json=body)
        web.post("/predict", content=(b"x" * 100 for _ in range(50)))
        web.post("/predict", content=b"{}")
        web.get("/model")
        metrics = web.get("/metrics").text
    assert anybody.status_code == 401
    counted = dict(re.findall(r'fitune_requests_total\{status="(\d+)"\} (\S+)', metrics))
    assert counted == {"200": "1.0", "401": "1.0", "413": "3.0", "415": "1.0", "422": "1.0", "500": "1.0"}
