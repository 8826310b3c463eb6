"""A worker process without a model, for tests: quick to start, and it does what the texts tell it to."""

import os
import signal
import time

from fitune.predicting import working
from fitune.values import Prediction, Refusal, Span


class Obedient:
    """Finds the first character of a text."""

    def __call__(self, examples):
        for example in examples:
            if example.text == "refuse":
                raise Refusal("not this one", where=str(example.source), next_step="another", code="FT710")
            if example.text == "break":
                raise ValueError("the model broke")
            if example.text == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if example.text == "leave":
                os._exit(3)
            if example.text == "sleep":
                time.sleep(60)
            if example.text == "print":
                print("a library's noise", flush=True)
        return [Prediction(e.text, spans=(Span(0, 1, str(os.getpid()), len(e.text) / 3),)) for e in examples]


def work():
    """As ``working.work``, with the stand-in."""
    working._ready = lambda settings: Obedient()
    working.work()


def work_badly():
    """Cannot begin."""

    def ready(settings):
        raise Refusal("no such model", where=settings["run"])

    working._ready = ready
    working.work()


START = "import sys; sys.path[:] = sys.argv[1:]; from tests.predicting.stand_in import {} as work; work()"
