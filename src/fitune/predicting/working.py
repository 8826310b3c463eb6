"""The worker's side of a prediction in several processes; ``workers.py`` starts it."""

from __future__ import annotations

import json
import os
import sys
import threading
from queue import SimpleQueue
from typing import Any, BinaryIO

from fitune.messages import set_language
from fitune.predicting.chunks import pack, pack_error, pack_predictions, unpack_examples


def work() -> None:
    """Settings come in as the first line, then chunks; an answer goes out for each. Ends with the standard input."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever a library prints must not stand among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    orders: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_hear, args=(sys.stdin.buffer, orders), daemon=True).start()
    predictor: Any = None
    while True:
        line = orders.get()
        try:
            if predictor is None:
                predictor = _ready(json.loads(line))
                answer = pack({"ready": os.getpid()})
            else:
                answer = pack_predictions(predictor(unpack_examples(line)))
        except Exception as error:  # noqa: BLE001  (raised again where people see it)
            answer = pack_error(error)
        try:
            answers.write(answer)
            answers.flush()
        except OSError:
            os._exit(0)  # nobody listens any more


def _hear(orders: BinaryIO, queue: SimpleQueue[bytes]) -> None:
    """In a thread of its own: when the other side is gone, however it went, the work in hand is for nobody."""
    for line in orders:
        queue.put(line)
    os._exit(0)


def _ready(settings: dict[str, Any]) -> Any:
    set_language(settings.pop("language"))
    from fitune.hf import keep_memory, light_imports

    keep_memory()
    with light_imports():
        from fitune.predicting.predictor import Predictor, refuse_workers_on_cuda

        predictor = Predictor(**settings)
    refuse_workers_on_cuda(settings["device"], predictor.engine)
    return predictor
