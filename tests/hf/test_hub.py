"""Resolving a model's name against a local server that plays the hub."""

import hashlib
import http.server
import threading
import time

import pytest

pytest.importorskip("huggingface_hub")

from fitune.hf import hub
from fitune.values import Refusal

WEIGHTS = bytes(range(256)) * 40
FILES = {"config.json": b"{}", "vocab.txt": "[PAD]\n的\n".encode(), "model.safetensors": WEIGHTS}


class Hub(http.server.BaseHTTPRequestHandler):
    """/owner/name/resolve/main/file, with the headers that huggingface_hub reads. The owner's name decides."""

    asked: list[str]

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, *, with_body):
        self.server.asked.append(self.path)
        _empty, owner, _name, _resolve, _revision, filename = self.path.split("?")[0].split("/", 5)
        if owner == "hang":
            time.sleep(20)
        status = {"gone": 404, "gated": 403, "busy": 429}.get(owner)
        body = FILES.get(filename)
        if status or body is None:
            self.send_response(status or 404)
            if not status:
                self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        stated = hashlib.sha256(body).hexdigest()
        if owner == "damaged" and filename == "model.safetensors":
            body = body[::-1]
        self.send_response(200)
        self.send_header("ETag", f'"{stated}"')
        self.send_header("X-Linked-Etag", f'"{stated}"')
        self.send_header("X-Linked-Size", str(len(body)))
        self.send_header("X-Repo-Commit", "a" * 40)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            truncated = owner == "truncated" and filename == "model.safetensors"
            self.wfile.write(body[: len(body) // 2] if truncated else body)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Hub)
        self.asked: list[str] = []

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def server():
    serving = Server()
    threading.Thread(target=serving.serve_forever, args=(0.05,), daemon=True).start()
    yield serving
    serving.shutdown()
    serving.server_close()


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """Empty caches of our own, no proxies, no settings from outside."""
    for name in ("HF_ENDPOINT", "FITUNE_MIRRORS", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("FITUNE_CACHE", str(tmp_path / "fitune"))
    from huggingface_hub import constants, file_download

    for module in (constants, file_download):
        for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, str(tmp_path / "hf"))
    return tmp_path


def test_fetches_what_is_needed_then_finds_it_without_asking(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    first = hub.resolve("good/model")
    assert first.origin == server.address
    assert (first.folder / "model.safetensors").read_bytes() == WEIGHTS
    assert not any("pytorch_model" in path for path in server.asked), "safetensors is preferred"
    server.asked.clear()
    again = hub.resolve("good/model")
    assert (again.folder, again.origin) == (first.folder, "cache")
    assert server.asked == []


@pytest.mark.parametrize(("owner", "told"), [("gone", "404"), ("gated", "HF_TOKEN"), ("busy", "429")])
def test_says_why_a_hub_did_not_deliver_and_what_to_type(server, monkeypatch, owner, told):
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    with pytest.raises(Refusal) as refused:
        hub.resolve(f"{owner}/model")
    text = str(refused.value)
    assert refused.value.code == "FT702"
    for expected in (told, server.address, "--model embedded", "model.safetensors", "vocab.txt", "hf-mirror.com"):
        assert expected in text
    assert str(hub.own_folder(f"{owner}/model")) in text


def test_a_truncated_download_is_no_model(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    with pytest.raises(Refusal, match=r"model\.safetensors"):
        hub.resolve("truncated/model")
    assert hub.local_folder("truncated/model") is None


def test_a_wrong_hash_is_refused_and_the_file_removed(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    with pytest.raises(Refusal, match="damaged") as refused:
        hub.resolve("damaged/model")
    assert refused.value.code == "FT704"
    assert hub.local_folder("damaged/model") is None


def test_a_hub_that_hangs_is_given_up(server, monkeypatch):
    monkeypatch.setattr(hub, "ANSWER_SECONDS", 0.3)
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    begun = time.monotonic()
    with pytest.raises(Refusal, match=r"timed out|no answer"):
        hub.resolve("hang/model")
    assert time.monotonic() - begun < 5


def test_nobody_listens(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(Refusal, match="could not be fetched"):
        hub.resolve("bert-base-chinese")


def test_mirrors_are_asked_in_order_and_only_when_named(server, monkeypatch):
    assert hub.endpoints() == ["https://huggingface.co"]
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("FITUNE_MIRRORS", f" {server.address}/ ,mirror.example")
    assert hub.endpoints() == ["http://127.0.0.1:9", server.address, "https://mirror.example"]
    assert hub.resolve("good/model").origin == server.address


def test_offline_asks_nobody(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(Refusal, match="HF_HUB_OFFLINE"):
        hub.resolve("good/model")
    assert server.asked == []


def test_files_put_by_hand_where_the_message_says(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    folder = hub.own_folder("hfl/chinese-macbert-base")
    folder.mkdir(parents=True)
    for name, body in FILES.items():
        (folder / name).write_bytes(body)
    assert hub.resolve("hfl/chinese-macbert-base").folder == folder


def test_a_folder_is_taken_as_it_is_or_refused_with_what_it_lacks(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    with pytest.raises(Refusal, match=r"no config\.json"):
        hub.resolve(str(folder))
    (folder / "config.json").write_text("{}")
    with pytest.raises(Refusal, match=r"model\.safetensors \| .*tokenizer\.json \|") as refused:
        hub.resolve(str(folder))
    assert refused.value.code == "FT703"
    for name, body in FILES.items():
        (folder / name).write_bytes(body)
    assert hub.resolve(str(folder)) == hub.Resolved(str(folder), folder, "folder")


def test_a_path_that_is_not_there_is_never_asked_of_a_hub(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    with pytest.raises(Refusal, match="no such folder"):
        hub.resolve("./runs/x/model")
    assert server.asked == []


def test_a_name_almost_right(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    with pytest.raises(Refusal, match="Did you mean chinese-macbert-base"):
        hub.resolve("gone/chinese-macbert-bas")
