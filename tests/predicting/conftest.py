"""A stand-in model and a real server for the tests of the service and of its page."""

import shutil
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from fitune.values import Prediction, Span


class CapitalFinder:
    """Finds capital letters: enough of a model to see offsets, order and failures."""

    task = "ner"

    def __call__(self, texts, text_pairs=None):
        if any("poison" in text for text in texts):
            raise RuntimeError("the model broke")
        return [Prediction(text, spans=tuple(self.spans(text))) for text in texts]

    def spans(self, text):
        capitals = [(i, c) for i, c in enumerate(text) if c.isascii() and c.isupper()]
        return [Span(i, i + 1, "CAP", 0.5 if c == "Q" else 1.0) for i, c in capitals]

    def describe(self):
        examples = [{"text": "例子A和😀B"}]
        return {"name": "capitals", "task": "ner", "labels": ["CAP", "OTHER"], "examples": examples}


class LengthJudge:
    """Calls a text long or short: a classifier to look at."""

    def __call__(self, texts, text_pairs=None):
        scores = [min(1.0, len(text) / 10) for text in texts]
        return [
            Prediction(text, labels=("long" if s > 0.5 else "short",), scores={"long": s, "short": 1 - s})
            for text, s in zip(texts, scores, strict=True)
        ]

    def describe(self):
        return {"name": "lengths", "task": "classification", "labels": ["long", "short"], "examples": []}


@contextmanager
def running(app):
    """``app`` behind uvicorn on a free port; yields the address."""
    import uvicorn

    from fitune.predicting.guards import HeaderDeadlineProtocol

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = uvicorn.Config(app, port=port, log_level="error", http=HeaderDeadlineProtocol, timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="session")
def chromium():
    """A real headless browser; the tests that need one say so when there is none."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update"]
        browser = playwright.chromium.launch(
            executable_path=path, args=[*flags, "--disable-background-networking", "--disable-sync"]
        )
        yield browser
        browser.close()
