"""Which token budget is in force: shrinks by what a failure's figures say, grows back carefully, travels as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fitune.microbatch.meter import Meter
from fitune.microbatch.oom import OutOfMemory
from fitune.microbatch.split import Budget, MicroBatch

# Quiet steps before a larger budget is tried again; doubled each time that growing fails.
FIRST_WAIT_STEPS = 32
LONGEST_WAIT_STEPS = 4096
# Share of the room that an estimate may fill: what is measured in one pass varies a little with the lengths in it.
SAFE_SHARE = 0.9


@dataclass(frozen=True)
class Change:
    """A change of the memory choice during a run; becomes a ``micro_batch`` event."""

    from_tokens: int | None
    """Token budget before; None: the whole step in one pass."""
    to_tokens: int | None
    reason: str
    """``out_of_memory``, ``another_rank``, ``memory_returned`` or ``knob``."""
    knob: str | None = None
    """Name of the exact knob that was turned, where one was."""
    failure: OutOfMemory | None = None


class Governor:
    """The budget in force and what was learned about the room. The same on all ranks of a run."""

    def __init__(self, budget: Budget) -> None:
        self.first = budget
        """The planned budget: growing never goes beyond it."""
        self.tokens = budget.tokens
        self.ceiling_tokens: int | None = budget.tokens
        """What the budget grows back to; with an unlimited first budget, the size of the pass that failed first."""
        self.quiet_steps = 0
        self.wait_steps = FIRST_WAIT_STEPS
        self._before_growth: int | None = None
        self.bytes_per_token = 0.0
        """Measured: most bytes a pass took above what was held before it, per padded token; 0: not measured."""

    @property
    def budget(self) -> Budget:
        return Budget(self.tokens, self.first.windows)

    def learn(self, pass_bytes: int, padded_tokens: int) -> None:
        """A pass of so many padded tokens took so many bytes at its peak, above what was held before it."""
        self.bytes_per_token = max(self.bytes_per_token, pass_bytes / padded_tokens)

    def smaller(
        self, failed: MicroBatch, failure: OutOfMemory, room_bytes: int | None, in_backward: bool
    ) -> int | None:
        """The token budget to try after ``failed``; None when it holds one window, which cannot be divided.

        ``room_bytes``: what a pass may take, measured after the failed one was dropped. With bytes per token known
        from passes that went well, the room says what fits. A pass that failed in its backward held about all it
        needs, so that the bytes it held against the room say it too. Otherwise: half.
        """
        if len(failed.indices) == 1:
            return None
        cost = failed.padded_tokens
        if self._before_growth is not None and self._before_growth < cost:
            return self._before_growth
        guess = cost // 2
        if room_bytes and self.bytes_per_token:
            guess = int(SAFE_SHARE * room_bytes / self.bytes_per_token)
        elif room_bytes and in_backward and failure.requested_bytes:
            guess = int(SAFE_SHARE * cost * room_bytes / (room_bytes + failure.requested_bytes))
        # Never below a quarter at once: a budget that is too small costs speed in every step to come.
        return max(failed.longest_tokens, cost // 4, min(guess, cost - failed.longest_tokens))

    def shrink_to(self, tokens: int, failed_tokens: int) -> None:
        """Take a smaller budget after a failed attempt."""
        if self.ceiling_tokens is None:
            self.ceiling_tokens = failed_tokens
        if self._before_growth is not None:
            self.wait_steps = min(2 * self.wait_steps, LONGEST_WAIT_STEPS)
        self.tokens, self.quiet_steps, self._before_growth = tokens, 0, None

    def step_done(self) -> None:
        """One more step without trouble."""
        self.quiet_steps += 1
        self._before_growth = None

    def wants_to_grow(self, meter: Meter | None) -> bool:
        """Whether a larger budget is due, and, where memory can be measured, whether it would fit."""
        if self.tokens is None or self.ceiling_tokens is None or self.tokens >= self.ceiling_tokens:
            return False
        if self.quiet_steps < self.wait_steps:
            return False
        if meter is not None and self.bytes_per_token:
            return self._grown() * self.bytes_per_token <= SAFE_SHARE * meter.available_bytes()
        return True

    def _grown(self) -> int:
        assert self.tokens is not None
        assert self.ceiling_tokens is not None
        return min(self.ceiling_tokens, self.tokens + max(1, self.tokens // 4))

    def grow(self) -> Change:
        """Take a quarter more, up to what was planned."""
        before, after = self.tokens, self._grown()
        self.tokens = self.first.tokens if after == self.ceiling_tokens else after
        self.quiet_steps, self._before_growth = 0, before
        return Change(before, self.tokens, "memory_returned")

    def state(self) -> dict[str, Any]:
        """Plain JSON for a checkpoint."""
        return {
            "tokens": self.tokens,
            "ceiling_tokens": self.ceiling_tokens,
            "quiet_steps": self.quiet_steps,
            "wait_steps": self.wait_steps,
            "bytes_per_token": self.bytes_per_token,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on with the budget of a checkpoint."""
        self.tokens, self.ceiling_tokens = state["tokens"], state["ceiling_tokens"]
        self.quiet_steps, self.wait_steps = state["quiet_steps"], state["wait_steps"]
        self.bytes_per_token = state["bytes_per_token"]
