"""Publishing: exactly the model's folder goes, privately unless told otherwise; the dry run sends nothing."""

from types import SimpleNamespace

import httpx
import pytest

from fitune.predicting import pack, push, pushing
from fitune.values import Refusal
from tests.predicting.models import make_model


@pytest.fixture
def hub(monkeypatch):
    """A stand-in for huggingface_hub that keeps what it was asked."""
    asked = []

    class HfApi:
        def create_repo(self, repository, **options):
            asked.append(("create", repository, options))
            return f"https://hub.example/{repository}"

        def upload_folder(self, **options):
            asked.append(("upload", options["repo_id"], sorted(options["allow_patterns"])))

    monkeypatch.setattr(pushing, "_client", lambda package: SimpleNamespace(HfApi=HfApi))
    return asked


def test_only_the_models_own_files_go_privately(tmp_path, hub):
    model = make_model(tmp_path)
    (tmp_path / "dev-predictions.jsonl").write_text('{"text": "秘密"}\n', encoding="utf-8")
    shipment = pack(tmp_path, "me/mine")
    assert hub == [], "packing sent something"
    assert {"model.safetensors", "fitune.json", "README.md", "tokenizer.json"} <= set(shipment.files)
    assert not any("prediction" in name for name in shipment.files)
    assert shipment.bytes_total == sum(p.stat().st_size for p in model.iterdir())
    assert push(shipment) == "https://hub.example/me/mine"
    assert hub == [
        ("create", "me/mine", {"private": True, "exist_ok": True}),
        ("upload", "me/mine", sorted(shipment.files)),
    ]


@pytest.mark.parametrize("name", ["mine", "", "me/mine/too", "../x/y", "我/模型", "me/ mine"])
def test_names_that_no_hub_takes(tmp_path, name):
    with pytest.raises(Refusal, match="repository name"):
        pack(make_model(tmp_path), name)


def test_a_hub_that_refuses_is_quoted_with_what_to_type(tmp_path, monkeypatch):
    class HfApi:
        def create_repo(self, *_a, **_k):
            raise OSError("401 Client Error: Unauthorized")

    monkeypatch.setattr(pushing, "_client", lambda package: SimpleNamespace(HfApi=HfApi))
    with pytest.raises(Refusal) as refused:
        push(pack(make_model(tmp_path), "me/mine"))
    assert "401" in str(refused.value)
    assert "hf auth login" in str(refused.value)


def not_answering(error):
    class HfApi:
        def create_repo(self, *_a, **_k):
            raise error

    return lambda package: SimpleNamespace(HfApi=HfApi, HubApi=HfApi)


def wrapped(error):
    try:
        raise RuntimeError("upload failed") from error
    except RuntimeError as raised:
        return raised


@pytest.mark.parametrize("hub", ["huggingface", "modelscope"])
@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("[Errno 111] Connection refused"),
        httpx.ReadTimeout(""),
        ConnectionRefusedError(111, "Connection refused"),
        type("OfflineModeIsEnabled", (ConnectionError,), {})("offline mode is enabled"),
        wrapped(httpx.ConnectTimeout("timed out")),
    ],
    ids=repr,
)
def test_without_a_network_the_advice_is_for_an_upload(tmp_path, monkeypatch, error, hub):
    monkeypatch.setattr(pushing, "_client", not_answering(error))
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example")
    with pytest.raises(Refusal) as refused:
        push(pack(make_model(tmp_path), "me/mine", hub=hub))
    assert refused.value.code == "FT715"
    assert "cannot be reached" in refused.value.found
    step = refused.value.next_step
    assert str(tmp_path / "model") in step
    assert "embedded" not in step
    assert "login" not in step
    assert ("mirrors take no uploads" in step) == ("--hub modelscope" in step) == (hub == "huggingface")


def test_a_mistake_is_not_called_a_hub_that_refuses(tmp_path, monkeypatch):
    monkeypatch.setattr(pushing, "_client", not_answering(AttributeError("no such method")))
    with pytest.raises(AttributeError):
        push(pack(make_model(tmp_path), "me/mine"))


def test_the_card_of_a_crf_says_what_plain_transformers_leaves_out(tmp_path):
    for head, told in (("crf", True), ("softmax", False)):
        model = make_model(tmp_path / head, head=head)
        pack(model, "me/mine")
        card = (model / "README.md").read_text(encoding="utf-8")
        assert ("without the CRF" in card and 'head = "softmax"' in card) is told


def test_a_missing_package_names_the_pip_line(tmp_path):
    shipment = pack(make_model(tmp_path), "me/mine", hub="modelscope")
    try:
        import modelscope  # noqa: F401
    except ImportError:
        with pytest.raises(Refusal) as refused:
            push(shipment)
        assert "pip install modelscope" in str(refused.value)
