"""The batcher: everything is answered once, in order; a culprit hurts nobody else; the queue has an end."""

import asyncio
import threading
import time

import pytest

from fitune.predicting.batching import Batcher, Closing, Item, QueueFull
from fitune.values import Prediction


class Echo:
    """A model that answers each text with itself; texts that contain 'poison' make it fail."""

    def __init__(self, seconds=0.0):
        self.batches, self.seconds, self.threads = [], seconds, set()

    def __call__(self, items):
        self.threads.add(threading.get_ident())
        self.batches.append([item.text for item in items])
        time.sleep(self.seconds)
        if any("poison" in item.text for item in items):
            raise ValueError("poisoned")
        return [Prediction(item.text, spans=()) for item in items]


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 20))


async def started(model, **options):
    batcher = Batcher(model, **options)
    batcher.start()
    return batcher


def texts_of(predictions):
    return [p.text for p in predictions]


def test_concurrent_requests_share_batches_and_keep_their_order():
    model = Echo(seconds=0.01)

    async def scene():
        batcher = await started(model)
        asked = [[f"{r}-{i}" for i in range(3)] for r in range(20)]
        answers = await asyncio.gather(*(batcher.submit([Item(t) for t in texts]) for texts in asked))
        await batcher.close()
        return asked, answers

    asked, answers = run(scene())
    assert [texts_of(a) for a in answers] == asked
    assert len(model.batches) < 20, "requests were not merged"
    assert len(model.threads) == 1, "the model was called from several threads"
    assert sum(map(len, model.batches)) == 60, "a text was run twice"


def test_a_poisoned_request_fails_alone():
    async def scene():
        batcher = await started(Echo(), wait_seconds=0.05)
        jobs = [batcher.submit([Item("a")]), batcher.submit([Item("poison")]), batcher.submit([Item("b")])]
        answers = await asyncio.gather(*jobs, return_exceptions=True)
        await batcher.close()
        return answers

    first, poisoned, last = run(scene())
    assert texts_of(first) == ["a"]
    assert isinstance(poisoned, ValueError)
    assert texts_of(last) == ["b"]


def test_a_full_queue_says_when_to_come_back():
    async def scene():
        batcher = await started(Echo(seconds=0.2), queue_characters=100, batch_characters=50)
        running = [asyncio.create_task(batcher.submit([Item("x" * 48)])) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(QueueFull) as refused:
            await batcher.submit([Item("y" * 60)])
        assert refused.value.retry_after_seconds >= 1
        answers = await asyncio.gather(*running)
        await batcher.close()
        return answers

    assert len(run(scene())) == 2


def test_an_idle_queue_takes_a_request_larger_than_its_limit():
    async def scene():
        batcher = await started(Echo(), queue_characters=10)
        answer = await batcher.submit([Item("z" * 500)])
        await batcher.close()
        return answer

    assert len(run(scene())) == 1


def test_closing_answers_what_was_accepted_and_takes_nothing_new():
    async def scene():
        batcher = await started(Echo(seconds=0.05), batch_characters=10)
        accepted = [asyncio.create_task(batcher.submit([Item(f"text{i}")])) for i in range(10)]
        await asyncio.sleep(0.01)
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)
        with pytest.raises(Closing):
            await batcher.submit([Item("late")])
        await closing
        return [texts_of(await task) for task in accepted]

    assert run(scene()) == [[f"text{i}"] for i in range(10)]


def test_a_request_that_gave_up_is_not_run():
    model = Echo(seconds=0.15)

    async def scene():
        batcher = await started(model, batch_characters=5)
        first = asyncio.create_task(batcher.submit([Item("first")]))
        await asyncio.sleep(0.05)
        with pytest.raises((asyncio.TimeoutError, TimeoutError)):
            await asyncio.wait_for(batcher.submit([Item("impatient")]), 0.02)
        await first
        await batcher.submit([Item("last")])
        await batcher.close()

    run(scene())
    assert model.batches == [["first"], ["last"]]


def test_a_model_that_loses_an_answer_is_an_error_not_a_shift():
    async def scene():
        batcher = await started(lambda items: [])
        with pytest.raises(RuntimeError, match="0 answers"):
            await batcher.submit([Item("a")])
        await batcher.close()

    run(scene())
