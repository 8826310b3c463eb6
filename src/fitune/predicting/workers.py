"""Prediction in several processes, each with its own model and its share of the cores. No torch on this side.

Processes of our own rather than ``multiprocessing``: that runs the user's script again in every child, and leaves
children behind when the parent is killed. These live as long as their standard input is open and not a moment longer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from fitune.messages import _, language
from fitune.predicting.chunks import STREAMED_EXAMPLES, chunks_of, pack, pack_examples, unpack_predictions
from fitune.values import Example, Prediction, Refusal

__all__ = ["predict_with_workers"]

AHEAD_CHUNKS = 2
"""Chunks in flight for each worker: one in its hands, and as many again that wait for a slower one's turn to come."""

RUNTIME_BYTES = 2**30
"""Of a worker beside its weights: torch, transformers and a pass of 4,096 tokens."""

_START = "import sys; sys.path[:] = sys.argv[1:]; from fitune.predicting.working import work; work()"
_NOT_READY = -1
# A core that nobody else has: the libraries of a worker must not each take all of them.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def predict_with_workers(
    run: str | Path,
    examples: Iterable[Example],
    *,
    workers: int,
    engine: str | None = None,
    device: str | None = None,
    span_scores: bool = True,
) -> Generator[Prediction, None, None]:
    """Predictions as ``Predictor(run).stream(examples)`` gives them, in input order and constant memory.

    At most ``workers`` processes, no more than there are chunks of STREAMED_EXAMPLES. Close the generator (or let it
    go) to end them before the last prediction; they end with this process, too, however it ends.

    Raises:
        Refusal: what a worker refused; one was killed; so many have no room in memory.
        WorkerError: a mistake in a worker, its traceback as the cause.
    """
    chunks = _until_failure(chunks_of(examples, STREAMED_EXAMPLES))
    first = list(islice(chunks, workers))
    count = sum(isinstance(chunk, list) for chunk in first)
    settings = {"run": str(run), "engine": engine, "device": device, "span_scores": span_scores}
    crew = _Crew(count, {**settings, "language": language()})
    if count:
        _check_room(Path(run), count)
    try:
        crew.start(max(1, cores_here() // max(1, count)))
        yield from _in_order(crew, chain(first, chunks))
    finally:
        crew.end()


def _until_failure(chunks: Iterable[list[Example]]) -> Generator[list[Example] | Exception, None, None]:
    """A file that breaks off says so in its turn: the rows before it come first, as in one process."""
    try:
        yield from chunks
    except Exception as error:  # noqa: BLE001  (raised by whoever comes to it)
        yield error


def _in_order(crew: _Crew, chunks: Iterable[list[Example] | Exception]) -> Generator[Prediction, None, None]:
    coming = iter(chunks)
    sent: dict[int, list[Example] | Exception] = {}
    arrived: dict[int, bytes] = {}
    turn = number = 0
    while True:
        while len(sent) < max(1, AHEAD_CHUNKS * crew.count) and (chunk := next(coming, None)) is not None:
            sent[number] = chunk
            if isinstance(chunk, list):
                crew.orders.put((number, pack_examples(chunk)))
            number += 1
        if turn not in sent:
            return
        chunk = sent.pop(turn)
        if isinstance(chunk, Exception):
            raise chunk
        while turn not in arrived:
            at, line = crew.next_answer()
            arrived[at] = line
        yield from unpack_predictions(arrived.pop(turn), chunk)
        turn += 1


class _Crew:
    """The processes, and a thread for each that talks with it."""

    def __init__(self, count: int, settings: dict[str, Any]) -> None:
        self.count = count
        self.orders: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
        self._settings = settings
        self._answers: SimpleQueue[tuple[int, bytes] | subprocess.Popen[bytes]] = SimpleQueue()
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, threads: int) -> None:
        environment = {**os.environ, **dict.fromkeys(_THREAD_VARIABLES, str(threads))}
        for _number in range(self.count):
            process = subprocess.Popen(
                [sys.executable, "-c", _START, *map(str, sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                # Ctrl-C is the parent's to answer, which then ends them all.
                start_new_session=True,
                creationflags=subprocess.CREATE_NEW_PROCESS_GROUP if sys.platform == "win32" else 0,
            )
            self._processes.append(process)
            threading.Thread(target=self._serve, args=(process,), daemon=True).start()

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError), process.stdin, process.stdout:
            process.stdin.write(pack(self._settings))
            process.stdin.flush()
            line = process.stdout.readline()
            if line and not line.startswith(b'{"ready"'):
                self._answers.put((_NOT_READY, line))
                return
            # A killed worker may leave half a line.
            while line.endswith(b"\n"):
                if (order := self.orders.get()) is None:
                    return
                number, chunk = order
                process.stdin.write(chunk)
                process.stdin.flush()
                line = process.stdout.readline()
                if line.endswith(b"\n"):
                    self._answers.put((number, line))
        self._answers.put(process)

    def next_answer(self) -> tuple[int, bytes]:
        """Waits for it; the number of its chunk, and the worker's line.

        Raises:
            Refusal: a worker is no more. Or what kept one from beginning, of any kind.
        """
        while True:
            try:
                # In slices: on Windows a wait without end cannot be interrupted.
                answer = self._answers.get(timeout=0.5)
            except Empty:
                continue
            if isinstance(answer, subprocess.Popen):
                raise _gone(answer)
            if answer[0] == _NOT_READY:
                unpack_predictions(answer[1], ())
            return answer

    def end(self) -> None:
        """All at once, whatever they are doing."""
        for process in self._processes:
            self.orders.put(None)
            process.kill()
        for process in self._processes:
            process.wait()


def _gone(process: subprocess.Popen[bytes]) -> Refusal:
    where = _("worker process {pid}", pid=process.pid)
    code = process.wait()
    if code == -9:
        return Refusal(
            _("it was killed from outside, mostly by a system that has no memory left"),
            where=where,
            next_step=_("Each worker holds the whole model. Fewer need less: --workers 1"),
            code="FT315",
        )
    return Refusal(
        _("it ended in the middle of its work (exit code {code})", code=code),
        where=where,
        next_step=_("Try in one process, which can say more: --workers 1"),
    )


def cores_here() -> int:
    """Cores that this process may use, counted as torch does: OMP_NUM_THREADS, else physical ones."""
    import psutil

    with suppress(ValueError):
        return max(1, int(os.environ.get("OMP_NUM_THREADS", "").split(",")[0]))
    allowed = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, min(allowed, psutil.cpu_count(logical=False) or allowed))


def most_workers(run: Path) -> int:
    """How many fit into half of the memory that is free now; 1 at least."""
    return max(1, _room_bytes() // _worker_bytes(run))


def _check_room(run: Path, count: int) -> None:
    if count <= (fit := most_workers(run)):
        return
    needed, room = (round(value / 2**30, 1) for value in (count * _worker_bytes(run), _room_bytes()))
    raise Refusal(
        _(
            "{count} workers need about {needed} GiB, and half of the free memory is {room} GiB",
            count=count,
            needed=needed,
            room=room,
        ),
        where="--workers",
        next_step=f"--workers {fit}",
    )


def _worker_bytes(run: Path) -> int:
    return 2 * _weights_bytes(run) + RUNTIME_BYTES


def _weights_bytes(run: Path) -> int:
    """The largest file of weights that a worker may load; states of the training are none of them."""
    largest = 0
    for place, folders, files in os.walk(run):
        folders[:] = [folder for folder in folders if folder != "checkpoints"]
        weights = (Path(place, file) for file in files if file.endswith((".safetensors", ".bin", ".onnx", ".data")))
        largest = max([largest, *(path.stat().st_size for path in weights)])
    return largest


def _room_bytes() -> int:
    from fitune.machine import probe_memory

    memory = probe_memory()
    limits = (memory["memory_free_bytes"], memory["memory_limit_bytes"])
    return min(limit for limit in limits if limit is not None) // 2
