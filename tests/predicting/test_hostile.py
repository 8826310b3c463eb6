"""Clients that mean harm or are merely broken: clear refusals, and the service answers the next one."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from fitune.predicting.guards import HeaderDeadlineProtocol
from fitune.predicting.service import Limits, create_app
from tests.predicting.conftest import CapitalFinder, running

LIMITS = Limits(body_seconds=1.0, request_seconds=5.0)


@pytest.fixture(scope="module")
def address():
    with running(create_app(CapitalFinder(), limits=LIMITS)) as where:
        yield where


def connect(address):
    parts = urlsplit(address)
    return socket.create_connection((parts.hostname, parts.port), timeout=15)


def head(length, path="/predict"):
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n".encode()


def alive(address):
    answer = httpx.post(f"{address}/predict", json={"text": "aB"}, timeout=10)
    return answer.status_code == 200 and answer.json()["predictions"][0]["entities"][0]["start"] == 1


def test_a_body_that_trickles_is_timed_out(address):
    with connect(address) as slow:
        slow.sendall(head(1000) + b"\r\n")
        started = time.monotonic()
        for _ in range(4):
            slow.sendall(b" ")
            time.sleep(0.3)
        answer = slow.recv(4096)
    assert b"408" in answer.split(b"\r\n")[0]
    assert time.monotonic() - started < 10
    assert alive(address)


def test_headers_that_never_end_are_cut_off(address, monkeypatch):
    monkeypatch.setattr(HeaderDeadlineProtocol, "header_seconds", 0.5)
    with connect(address) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        slow.settimeout(8)
        assert slow.recv(4096) == b"", "the connection was kept open"
    assert alive(address)


def test_a_cut_connection_hurts_nobody(address):
    for _ in range(20):
        with connect(address) as cut:
            cut.sendall(head(500) + b'\r\n{"text": "ab')
    for _ in range(20):
        with connect(address) as cut:  # asked, then gone before the answer
            body = json.dumps({"texts": ["B" * 1000] * 50}).encode()
            cut.sendall(head(len(body)) + b"\r\n" + body)
    assert alive(address)


def test_a_body_of_100_megabytes_is_refused_before_it_is_read(address):
    with connect(address) as big:
        big.sendall(head(100_000_000) + b"\r\n")
        assert b"413" in big.recv(4096).split(b"\r\n")[0]
    assert alive(address)


def test_a_million_tiny_texts_are_refused(address):
    started = time.monotonic()
    answer = httpx.post(f"{address}/predict", json={"texts": ["a"] * 1_000_000}, timeout=30)
    assert answer.status_code == 413
    assert time.monotonic() - started < 15
    assert alive(address)


def test_garbage_is_not_http(address):
    for garbage in (b"\x16\x03\x01\x02\x00\x01\x00", b"\0" * 100, b"GET\r\n\r\n", b"A" * 100_000):
        with connect(address) as odd:
            odd.sendall(garbage + b"\r\n\r\n")
            odd.settimeout(12)
            answer = odd.recv(4096)
            assert not answer or b" 400 " in answer.split(b"\r\n")[0], garbage[:20]
    assert alive(address)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe{\x00", b'{"text": "\xe4\xb8"}', b"null", b"[" * 5000, b"1e999", b'{"text": NaN}']
)
def test_bodies_that_are_not_what_they_say(address, content):
    answer = httpx.post(f"{address}/predict", content=content, headers={"content-type": "application/json"}, timeout=10)
    assert answer.status_code in (400, 422)
    assert alive(address)


def test_every_answer_is_one_that_the_document_declares(address):
    """schemathesis invents requests from the OpenAPI document: no 5xx, no answer that is not declared."""
    tool = Path(sys.executable).with_name("schemathesis")
    command = [
        tool,
        "run",
        f"{address}/openapi.json",
        "--max-examples=40",
        "--seed=7",
        "--phases=examples,coverage,fuzzing",
    ]
    ran = subprocess.run([*command, "--no-color"], capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-1000:]
    assert alive(address)
