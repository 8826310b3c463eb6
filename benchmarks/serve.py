"""Load on ``fitune serve``: many clients against one at a time, equality with Predictor, memory over many requests.

    python benchmarks/serve.py RUN TEXTS.txt [--seconds 60] [--requests 20000] [--engine onnx] [--out FILE]

The clients are httpx's, which compare every answer; where ``wrk`` (Debian package) is installed it asks as well.

TEXTS.txt holds one text a line, of mixed lengths. Server and clients share this machine's cores, so texts per second
are lower than a client elsewhere would see; the two ways of asking are compared in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import cycle, islice
from pathlib import Path

import httpx
import psutil

from fitune import Predictor, __version__


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_server(run: str, port: int, engine: str | None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "fitune", "serve", run, "--port", str(port)]
    server = subprocess.Popen(command + (["--engine", engine] if engine else []), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=2).status_code == 200:
                return server
        except httpx.HTTPError:
            time.sleep(0.2)
        if server.poll() is not None:
            break
    raise SystemExit("the server did not start")


WRK_SCRIPT = """
local bodies = {%s}
local next_body = 0
wrk.method, wrk.headers["Content-Type"] = "POST", "application/json"
request = function()
  next_body = next_body %% #bodies + 1
  return wrk.format(nil, "/predict", nil, bodies[next_body])
end
done = function(summary, latency)
  local e = summary.errors
  print(string.format('JSON{"requests": %%d, "seconds": %%f, "p50": %%f, "p95": %%f, "p99": %%f, "errors": %%d}',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(95) / 1e3,
    latency:percentile(99) / 1e3, e.connect + e.read + e.write + e.status + e.timeout))
end
"""


def wrk(address: str, texts: list[str], clients: int, seconds: float) -> dict[str, float]:
    """The same load by ``wrk``, a client in C that leaves the cores to the server; milliseconds; not-2xx are errors."""
    bodies = ", ".join(f"[==[{json.dumps({'text': text}, ensure_ascii=False)}]==]" for text in texts)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "load.lua"
        script.write_text(WRK_SCRIPT % bodies, encoding="utf-8")
        command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds:.0f}s", "--timeout", "60s", "-s", str(script), address]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(told.partition("JSON")[2].splitlines()[0])


class Load:
    """Clients that ask as fast as they are answered, one text a request, until time or requests are used up."""

    def __init__(self, address: str, texts: list[str], clients: int) -> None:
        self.address, self.texts, self.clients = address, texts, clients
        self.seconds: list[float] = []
        self.statuses: Counter[int] = Counter()
        self.answers: dict[str, object] = {}
        self.differing = 0

    async def run(self, *, seconds: float = 1e9, requests: int = 10**9) -> float:
        """Returns the wall seconds it took."""
        source = islice(cycle(self.texts), requests)
        started = time.monotonic()
        limits = httpx.Limits(max_connections=self.clients, max_keepalive_connections=self.clients)
        async with httpx.AsyncClient(base_url=self.address, timeout=120, limits=limits) as client:
            await asyncio.gather(*(self._client(client, source, started + seconds) for _ in range(self.clients)))
        return time.monotonic() - started

    async def _client(self, client: httpx.AsyncClient, source, deadline: float) -> None:
        for text in source:
            if time.monotonic() > deadline:
                return
            began = time.monotonic()
            answer = await client.post("/predict", json={"text": text})
            self.seconds.append(time.monotonic() - began)
            self.statuses[answer.status_code] += 1
            if answer.status_code == 429:
                await asyncio.sleep(float(answer.headers["Retry-After"]))
                continue
            found = bare(answer.json()["predictions"][0])
            self.differing += self.answers.setdefault(text, found) != found

    def percentile(self, share: float) -> float:
        return 1000 * statistics.quantiles(self.seconds, n=1000)[round(share * 1000) - 1]


def pipeline_rate(run: str, texts: list[str], seconds: float) -> float:
    """Texts a second of a plain ``transformers.pipeline``, one text a call, without any server around it."""
    from transformers import pipeline

    folder = Path(run) / "model" if (Path(run) / "model").is_dir() else Path(run)
    task = json.loads((folder / "fitune.json").read_text(encoding="utf-8"))["task"]
    ask = pipeline("ner" if task == "ner" else "text-classification", str(folder))
    ask(texts[0])
    started, done = time.monotonic(), 0
    while time.monotonic() - started < seconds:
        ask(texts[done % len(texts)])
        done += 1
    return done / (time.monotonic() - started)


def bare(prediction: dict) -> object:
    """Without scores, which depend on the batch's shape in the last bits."""
    return [(e["start"], e["end"], e["label"]) for e in prediction.get("entities", [])] or prediction.get("labels")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("texts")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--engine")
    parser.add_argument("--out", default="benchmarks/serve.md")
    a = parser.parse_args()
    texts = [line for line in Path(a.texts).read_text(encoding="utf-8").splitlines() if line.strip()]
    port = free_port()
    server = start_server(a.run, port, a.engine)
    address = f"http://127.0.0.1:{port}"
    try:
        alone = Load(address, texts, 1)
        alone_seconds = asyncio.run(alone.run(seconds=a.seconds / 2))
        many = Load(address, texts, a.clients)
        many_seconds = asyncio.run(many.run(seconds=a.seconds))
        by_wrk = {n: wrk(address, texts, n, a.seconds) for n in (1, a.clients)} if shutil.which("wrk") else {}
        process = psutil.Process(server.pid)
        rest = Load(address, texts, a.clients)
        before = process.memory_info().rss
        asyncio.run(rest.run(requests=a.requests))
        grown = process.memory_info().rss - before
    finally:
        server.terminate()
        server.wait(90)
    stock = pipeline_rate(a.run, texts, a.seconds / 4)
    expected = Predictor(a.run, engine=a.engine)
    seen = list(many.answers)
    differing = sum(
        bare(p.to_json()) != many.answers[t] for t, p in zip(seen, expected(seen), strict=True)
    )  # predicted together here, in other batches there
    one, all_ = len(alone.seconds) / alone_seconds, len(many.seconds) / many_seconds
    lengths = [len(t) for t in texts]
    lines = [
        "# fitune serve under load",
        "",
        f"Made on {datetime.date.today()} by `python benchmarks/serve.py` (fitune {__version__}, Python "
        f"{platform.python_version()}, engine {expected.engine}, {psutil.cpu_count()} shared cores, server and clients "
        "on the same machine).",
        f"{len(texts)} texts of {min(lengths)} to {max(lengths)} characters, mean {statistics.mean(lengths):.0f}; "
        "one a request.",
        "",
        "| | clients | requests | texts/s | p50 ms | p95 ms | p99 ms | answers by status |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, load, rate in (("one at a time", alone, one), ("together", many, all_)):
        figures = " | ".join(f"{load.percentile(share):.0f}" for share in (0.5, 0.95, 0.99))
        lines.append(
            f"| {name} | {load.clients} | {len(load.seconds)} | {rate:.1f} | {figures} | {dict(load.statuses)} |"
        )
    for n, told in by_wrk.items():
        figures = " | ".join(f"{told[p]:.0f}" for p in ("p50", "p95", "p99"))
        errors = f"{told['errors']} other than 2xx" if told["errors"] else "all 2xx"
        rate = told["requests"] / told["seconds"]
        lines.append(f"| asked by wrk | {n} | {told['requests']} | {rate:.1f} | {figures} | {errors} |")
    if by_wrk:
        ratio = by_wrk[a.clients]["requests"] / by_wrk[a.clients]["seconds"]
        ratio /= by_wrk[1]["requests"] / by_wrk[1]["seconds"]
        lines += ["", f"- Throughput together / one at a time, asked by wrk: **{ratio:.2f} x**."]
    lines += [
        *([] if by_wrk else [""]),
        f"- Throughput together / one at a time: **{all_ / one:.2f} x**; a plain `pipeline` without a server, one text "
        f"a call: {stock:.1f} texts/s, together / pipeline: **{all_ / stock:.2f} x**.",
        f"- Answers that differ from `Predictor`'s: {differing} of {len(seen)} texts; answers that changed from one "
        f"request to the next: {many.differing}.",
        f"- Memory of the server over another {sum(rest.statuses.values())} requests: {grown / 2**20:+.1f} MiB "
        f"(from {before / 2**20:.0f} MiB); statuses {dict(rest.statuses)}.",
        "",
    ]
    Path(a.out).write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
