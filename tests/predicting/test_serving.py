"""The service as a process: SIGTERM under load, a taken port, a damaged model, the token on the screen."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest

from tests.predicting.models import make_model

SLOW_SERVER = """
import sys, time
from fitune.predicting import serve
from tests.predicting.conftest import CapitalFinder

class Slow(CapitalFinder):
    def __call__(self, texts, text_pairs=None):
        time.sleep(0.15)
        return super().__call__(texts, text_pairs)

serve(Slow(), port=int(sys.argv[1]))
"""


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(address, process):
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout.read() if process.stdout else "it ended"
        try:
            if httpx.get(f"{address}/readyz", timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail("not ready in time")


def test_sigterm_under_load_answers_every_accepted_request(port):
    address = f"http://127.0.0.1:{port}"
    with subprocess.Popen([sys.executable, "-c", SLOW_SERVER, str(port)]) as server:
        wait_until_ready(address, server)
        answers, refused = [], []

        def ask(number):
            # Long texts, so that the queue holds several batches when the signal comes.
            body = {"texts": [f"{number}B" + "文" * 4000]}
            try:
                answer = httpx.post(f"{address}/predict", json=body, timeout=60)
            except httpx.ConnectError:  # it came after the signal, and was not accepted
                refused.append(number)
                return
            answers.append((answer.status_code, answer.json()["predictions"][0]["text"][: len(str(number))]))

        clients = [threading.Thread(target=ask, args=(number,)) for number in range(30)]
        for client in clients:
            client.start()
        deadline = time.monotonic() + 20
        while not answers and time.monotonic() < deadline:
            time.sleep(0.01)
        # What the kernel took but the service has not seen yet is reset when it closes: let it see all of them.
        time.sleep(0.3)
        answered_before = len(answers)
        server.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(60)
        assert sorted(answers) == sorted((200, str(number)) for number in range(30) if number not in refused)
        assert len(answers) > answered_before + 3, "the signal came too late to show anything"
        assert server.wait(30) in (0, -signal.SIGTERM)


def run_fitune(*arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "fitune", "--lang", "en", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
    )


def test_the_command_serves_and_a_taken_port_is_said(tmp_path, port):
    model = make_model(tmp_path)
    address = f"http://127.0.0.1:{port}"
    with run_fitune("serve", model, "--port", port) as first:
        try:
            wait_until_ready(address, first)
            found = httpx.post(f"{address}/predict", json={"text": "甲乙"}, timeout=10).json()
            assert found["predictions"][0]["text"] == "甲乙"
            with run_fitune("serve", model, "--port", port) as second:
                said = second.communicate(timeout=90)[0]
                assert second.returncode == 2, said
                assert f"--port {port + 1}" in said
                assert "Traceback" not in said
        finally:
            first.send_signal(signal.SIGINT)
        said = first.communicate(timeout=60)[0]
        assert address in said
        assert "Traceback" not in said


def test_others_may_reach_it_only_with_a_token(tmp_path, port):
    model = make_model(tmp_path)
    with run_fitune("serve", model, "--host", "0.0.0.0", "--port", port, FITUNE_TOKEN="") as server:
        try:
            wait_until_ready(f"http://127.0.0.1:{port}", server)
            assert httpx.post(f"http://127.0.0.1:{port}/predict", json={"text": "甲"}).status_code == 401
        finally:
            server.send_signal(signal.SIGTERM)
        said = server.communicate(timeout=60)[0]
        assert "Token, demanded with every request: " in said
        assert "TLS" in said


def test_a_damaged_model_is_refused_at_start(tmp_path, port):
    model = make_model(tmp_path)
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-50])
    with run_fitune("serve", model, "--port", port) as server:
        said = server.communicate(timeout=90)[0]
        assert server.returncode == 2
        assert "model.safetensors" in said
        assert "Traceback" not in said
