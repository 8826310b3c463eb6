"""Dynamic batching: concurrent requests share one pass through the model.

Texts wait a few milliseconds for company, then go to the model together; the model sorts them by length into
token-budget batches of its own. The queue has a limit in characters: past it a request is told to come back later
(429) instead of making everybody wait. A text that makes the model fail never hurts its batch-mates: the batch is run
again one by one, and only the culprit's request fails.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic

from fitune.values import Prediction, Refusal

__all__ = ["Batcher", "Closing", "Item", "QueueFull", "Refused"]


@dataclass(frozen=True, slots=True)
class Item:
    """One text to predict, or a pair of texts."""

    text: str
    text_pair: str | None = None

    @property
    def cost_characters(self) -> int:
        # An empty text still costs a row of the batch.
        return len(self.text) + len(self.text_pair or "") + 2


PredictFunction = Callable[[Sequence[Item]], Sequence[Prediction]]


class QueueFull(Exception):
    """The queue has no room for these texts now."""

    def __init__(self, retry_after_seconds: int) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"queue full; retry after {retry_after_seconds} s")


class Closing(Exception):
    """The service is shutting down and takes nothing new."""


class Refused(Exception):
    """The model refuses one text of a request (number ``number`` of it, from 0)."""

    def __init__(self, number: int, refusal: Refusal) -> None:
        self.number, self.refusal = number, refusal
        super().__init__(number, refusal)


@dataclass(slots=True)
class _Waiting:
    item: Item
    future: asyncio.Future[Prediction] = field(repr=False)


def _error_of(future: asyncio.Future[Prediction]) -> BaseException | None:
    return future.exception() if future.done() and not future.cancelled() else None


class Batcher:
    """Merges texts of concurrent requests into batches for ``predict``, which runs in one thread of its own.

    Parameters
    ----------
    predict: texts -> predictions, in order; called from one thread only.
    wait_seconds: how long the first text of a batch waits for company while the model is idle.
    batch_characters: most characters handed to ``predict`` at once (one text may exceed it alone).
    queue_characters: most characters waiting; past it ``submit`` raises QueueFull.
    observe: called with (texts, seconds) after each batch, for the metrics.
    """

    def __init__(
        self,
        predict: PredictFunction,
        *,
        wait_seconds: float = 0.004,
        batch_characters: int = 8_192,
        queue_characters: int = 262_144,
        observe: Callable[[int, float], None] | None = None,
    ) -> None:
        self._predict, self._observe = predict, observe
        self._wait_seconds, self._batch_characters = wait_seconds, batch_characters
        self._queue_characters_limit = queue_characters
        self._queue: deque[_Waiting] = deque()
        self._queued_characters = 0
        self._unfinished = 0
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="fitune-predict")
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        # Characters per second, smoothed; unknown until the first batch has run.
        self._rate: float | None = None

    @property
    def queued_characters(self) -> int:
        """Characters waiting now."""
        return self._queued_characters

    def start(self) -> None:
        """Begin to serve; call inside a running event loop."""
        self._task = asyncio.create_task(self._run(), name="fitune-batcher")

    async def close(self) -> None:
        """Answer everything that was accepted, then stop."""
        self._closing = True
        await self._idle.wait()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown(wait=True)

    async def submit(self, items: Sequence[Item]) -> list[Prediction]:
        """Predictions of ``items``, in their order.

        Raises QueueFull when there is no room, Closing during shutdown, Refused for a text that ``predict`` raised a
        Refusal for, and whatever else it raised for the first culprit among these items. If the caller is cancelled
        (a time-out), its texts still waiting are dropped.
        """
        if self._closing:
            raise Closing
        cost = sum(item.cost_characters for item in items)
        # An empty queue takes any request that the limits of the service let through, however large.
        if self._queue and self._queued_characters + cost > self._queue_characters_limit:
            raise QueueFull(self._seconds_until_room())
        loop = asyncio.get_running_loop()
        waiting = [_Waiting(item, loop.create_future()) for item in items]
        self._queue.extend(waiting)
        self._queued_characters += cost
        self._unfinished += len(waiting)
        self._idle.clear()
        self._arrived.set()
        try:
            return list(await asyncio.gather(*(one.future for one in waiting)))
        except BaseException as error:
            number = next((n for n, one in enumerate(waiting) if _error_of(one.future) is error), None)
            for one in waiting:
                one.future.cancel()
            if isinstance(error, Refusal) and number is not None:
                raise Refused(number, error) from error
            raise

    def _seconds_until_room(self) -> int:
        if not self._rate:
            return 1
        return min(60, max(1, round(self._queued_characters / self._rate)))

    async def _run(self) -> None:
        while True:
            # What arrived while the model was busy has waited long enough.
            was_idle = not self._queue
            while not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
            if was_idle and self._queued_characters < self._batch_characters:
                await asyncio.sleep(self._wait_seconds)
            await self._serve(self._take())

    def _take(self) -> list[_Waiting]:
        """The oldest texts, up to the batch limit; those whose request gave up are dropped here."""
        batch: list[_Waiting] = []
        characters = 0
        while self._queue:
            cost = self._queue[0].item.cost_characters
            if batch and characters + cost > self._batch_characters:
                break
            one = self._queue.popleft()
            self._queued_characters -= cost
            if one.future.done():
                self._finish(1)
                continue
            batch.append(one)
            characters += cost
        return batch

    async def _serve(self, batch: list[_Waiting]) -> None:
        if not batch:
            return
        started = monotonic()
        try:
            outcomes = await self._call(batch)
            seconds = max(monotonic() - started, 1e-6)
            rate = sum(one.item.cost_characters for one in batch) / seconds
            self._rate = rate if self._rate is None else 0.8 * self._rate + 0.2 * rate
            if self._observe is not None:
                self._observe(len(batch), seconds)
            for one, outcome in zip(batch, outcomes, strict=True):
                if one.future.done():
                    continue
                if isinstance(outcome, Exception):
                    one.future.set_exception(outcome)
                else:
                    one.future.set_result(outcome)
        finally:
            self._finish(len(batch))

    async def _call(self, batch: list[_Waiting]) -> list[Prediction | Exception]:
        loop = asyncio.get_running_loop()

        async def run(items: list[Item]) -> list[Prediction]:
            found = list(await loop.run_in_executor(self._thread, self._predict, items))
            if len(found) != len(items):
                raise RuntimeError(f"predict returned {len(found)} answers for {len(items)} texts")
            return found

        try:
            return list(await run([one.item for one in batch]))
        except Exception as error:  # noqa: BLE001 - handed to the request that caused it, below
            if len(batch) == 1:
                return [error]
        outcomes: list[Prediction | Exception] = []
        for one in batch:
            try:
                outcomes.extend(await run([one.item]))
            except Exception as error:  # noqa: BLE001 - becomes this request's answer
                outcomes.append(error)
        return outcomes

    def _finish(self, count: int) -> None:
        self._unfinished -= count
        if self._unfinished == 0:
            self._idle.set()
