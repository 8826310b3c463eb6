"""``list_models``: what is here first, without torch and without a network."""

import json
import subprocess
import sys

import pytest

from fitune.hf import KNOWN, list_models
from fitune.hf.listing import EMBEDDED_PARAMETERS


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FITUNE_CACHE", str(tmp_path / "fitune"))
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf"))
    return tmp_path


def put(folder, **configuration):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(configuration))
    (folder / "vocab.txt").write_text("[PAD]\n")
    (folder / "model.safetensors").write_bytes(b"")


def test_embedded_and_the_well_known_ones(cache):
    listed = list_models()
    names = [model.name for model in listed]
    assert "embedded" in names
    assert {known.name for known in KNOWN} <= set(names)
    assert next(model for model in listed if model.name == "embedded").parameters == EMBEDDED_PARAMETERS
    assert next(model for model in listed if model.name == "bert-base-chinese").parameters == 102_000_000


def test_says_where_a_model_would_be_fetched_from(cache, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    source = {model.name: model.source for model in list_models()}
    assert source["bert-base-chinese"] == "https://mirror.example/google-bert/bert-base-chinese"


def test_what_is_here_comes_first_and_generators_are_left_out(cache):
    put(cache / "fitune" / "models" / "bert-base-chinese", architectures=["BertForMaskedLM"])
    put(cache / "fitune" / "models" / "someone--encoder", architectures=["BertModel"])
    put(cache / "hf" / "models--another--encoder" / "snapshots" / "abc", architectures=["BertModel"])
    put(cache / "hf" / "models--a--chatbot" / "snapshots" / "abc", architectures=["LlamaForCausalLM"])
    (cache / "hf" / "models--half--fetched" / "snapshots" / "abc").mkdir(parents=True)
    listed = list_models()
    here = {model.name for model in listed if model.is_here} - {"embedded"}
    assert here == {"bert-base-chinese", "someone/encoder", "another/encoder"}
    assert [model.is_here for model in listed] == sorted((model.is_here for model in listed), reverse=True)


def test_loads_no_torch():
    script = "import sys; from fitune.hf import list_models, resolve; list_models(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
