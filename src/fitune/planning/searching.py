"""The Fits of a job, those that change least first, and the fastest that fits a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from fitune.messages import _
from fitune.microbatch import Budget
from fitune.planning.models import MetaLoader
from fitune.planning.outcome import Allow, usable_bytes
from fitune.planning.template import Template, crf_bytes, trace_template
from fitune.planning.timing import Seconds, epoch_seconds
from fitune.planning.workload import Shape, Workload, shapes_of
from fitune.values import FIDELITY, Card, Fidelity, Fit, RejectedFit

BUDGETS = (16384, 8192, 4096, 2048, 1024, 512)
"""Tokens per micro-batch that are tried besides the whole step and a single window."""
REPLAYED_STEPS, REPLAYED_PASSES = 8, 48
"""Steps of different shapes that a prediction replays, and the most passes in them: fragmentation is part of it."""
LOOKED_AT_STEPS = 20_000
"""Steps of the epochs' real order that are searched for the heaviest micro-batch."""


def fidelity_of(fit: Fit) -> Fidelity:
    """What a Fit does to the thing learned, against ``Fit()``."""
    plain = Fit()
    worst = max(
        (FIDELITY[name] for name in Fit.model_fields if getattr(fit, name) != getattr(plain, name)),
        default=Fidelity.EXACT,
    )
    of_optimizer = {"adamw_8bit": Fidelity.ROUNDING, "adafactor": Fidelity.DIFFERENT, "sgd": Fidelity.DIFFERENT}
    return max(worst, of_optimizer.get(fit.optimizer, Fidelity.EXACT))


def precision_of(card: Card) -> Literal["fp32", "fp16", "bf16"]:
    """What training takes on this card (``training.choose_precision``): bf16 from sm80, fp16 from sm70, else fp32."""
    if card.compute_capability is None or card.compute_capability < (7, 0):
        return "fp32"
    return "bf16" if card.bf16_tflops else "fp16"


def ladder(card: Card, allow: Allow, layers: int) -> list[list[Fit]]:
    """Fits without a budget, level by level: a level is climbed only when nothing below it fits."""
    precision = "fp32" if allow == "exact" else precision_of(card)
    plain = Fit(precision=precision)
    levels = [[plain], [plain.model_copy(update={"checkpoint_every": 1})]]
    if allow == "exact":
        return levels
    eight = plain.model_copy(update={"optimizer": "adamw_8bit"})
    levels += [[eight], [eight.model_copy(update={"checkpoint_every": 1})]]
    half = plain.model_copy(update={"frozen_layers": layers // 2})
    if allow == "different":
        return [
            [plain, half],
            *levels[1:],
            [half.model_copy(update={"optimizer": "adamw_8bit", "checkpoint_every": 1})],
        ]
    # Last resort, named as DIFFERENT in the plan.
    return [*levels, [half.model_copy(update={"optimizer": "adamw_8bit", "checkpoint_every": 1})]]


@dataclass(frozen=True)
class Demand:
    """A workload under one budget."""

    budget: int | None
    shapes: Counter[Shape]
    """Micro-batches of one epoch."""
    steps: int
    heaviest: Shape
    """Of all epochs."""
    sequence: tuple[tuple[Shape, ...], ...]
    """Steps to replay: some as they come, the heaviest, some more, the heaviest again."""


def demand(workload: Workload, tokens: int | None) -> Demand:
    """How a budget divides the steps of every epoch."""
    budget = Budget(tokens=tokens)
    shapes: Counter[Shape] = Counter()
    steps = looked_at = 0
    worst: list[Shape] = []
    first: list[tuple[Shape, ...]] = []
    for epoch in range(max(1, round(workload.job.epochs or 1))):
        for lengths in workload.steps(epoch):
            pieces = shapes_of(lengths, budget)
            looked_at += 1
            if epoch == 0:
                steps += 1
                shapes.update((b, -(-length // 8) * 8) for b, length in pieces)
                if len(first) < REPLAYED_STEPS:
                    first.append(tuple(pieces))
            if not worst or _weight(pieces[0]) > _weight(worst[0]):
                worst = pieces
        if looked_at > LOOKED_AT_STEPS:
            break
    heavy = _trimmed(worst)
    room = max(1, min(REPLAYED_STEPS, REPLAYED_PASSES // max(1, len(heavy)))) - 1
    ordinary = [_trimmed(list(step)) for step in first[:room]]
    middle = (len(ordinary) + 1) // 2
    sequence = (*ordinary[:middle], heavy, *ordinary[middle:], heavy)
    return Demand(tokens, shapes, steps, worst[0], sequence)


def _trimmed(pieces: list[Shape]) -> tuple[Shape, ...]:
    """The heaviest micro-batches stand first; what follows them in a step is lighter and finds a warm cache."""
    return tuple(pieces[:16])


def _weight(shape: Shape) -> float:
    return shape[0] * shape[1] * (1 + shape[1] / 2048)


@dataclass
class Candidate:
    """A Fit on a card, predicted."""

    fit: Fit
    peak_bytes: int
    """Segments and context."""
    epoch: Seconds


@dataclass
class Found:
    """The best Fit of a card, and what was rejected on the way."""

    best: Candidate | None
    rejected: list[RejectedFit] = field(default_factory=list[RejectedFit])


class Search:
    """Plans one workload for any number of cards: traces and replays are made once, when first needed."""

    def __init__(
        self,
        workload: Workload,
        loader: MetaLoader,
        *,
        layers: int,
        segments: bool,
        templates: dict[tuple[object, ...], Template] | None = None,
    ) -> None:
        self.workload, self._loader, self.layers, self._segments = workload, loader, layers, segments
        self._templates: dict[tuple[object, ...], Template] = {} if templates is None else templates
        self._demands: dict[int | None, Demand] = {}
        self._peaks: dict[tuple[object, ...], int] = {}

    def of(self, workload: Workload) -> Search:
        """The same model with another workload: a trace holds for every batch and length."""
        return Search(workload, self._loader, layers=self.layers, segments=self._segments, templates=self._templates)

    @property
    def traces(self) -> int:
        """Templates that were simulated so far."""
        return len(self._templates)

    def demand(self, tokens: int | None) -> Demand:
        if tokens not in self._demands:
            self._demands[tokens] = demand(self.workload, tokens)
        return self._demands[tokens]

    def budgets(self) -> list[int | None]:
        """The whole step, some in between, one window; those that divide nothing are left out."""
        whole = self.demand(None).heaviest
        longest = self.workload.longest
        between = [b for b in BUDGETS if longest < b < whole[0] * whole[1]]
        last = [longest] if longest < whole[0] * whole[1] else []
        return [None, *between, *last]

    def template(self, fit: Fit, compute_capability: tuple[int, int] = (8, 0)) -> Template:
        """fp16 stands for bf16 too (the same bytes, and the loss scale on top), but not where bf16 is emulated."""
        aligned = self.workload.longest % 16 == 0
        emulated = fit.precision == "bf16" and compute_capability < (8, 0)
        if fit.precision == "bf16" and not emulated:
            fit = fit.model_copy(update={"precision": "fp16"})
        key = (*_memory_key(fit), aligned)
        if key not in self._templates:
            self._templates[key] = trace_template(
                self.workload.job,
                fit,
                self.workload.labels,
                self._loader,
                aligned=aligned,
                segments=self._segments,
            )
        return self._templates[key]

    def reserved_bytes(self, fit: Fit, compute_capability: tuple[int, int]) -> int:
        """Most segments of the allocator over a sequence of steps of different shapes, the heaviest among them."""
        wanted = self.demand(fit.micro_batch_tokens)
        # The card changes the size of cuBLAS' workspace alone.
        hopper = min(compute_capability, (8, 0)) if compute_capability < (9, 0) else compute_capability
        if fit.precision != "bf16" and compute_capability < (8, 0):
            hopper = (8, 0)
        key = (*_memory_key(fit), fit.micro_batch_tokens, hopper)
        if key not in self._peaks:
            template = self.template(fit, compute_capability)
            self._peaks[key] = template.replay(wanted.sequence, hopper).reserved_bytes
        return self._peaks[key] + self._crf(wanted.heaviest)

    def _crf(self, shape: Shape) -> int:
        if self.workload.job.head != "crf":
            return 0
        return crf_bytes(shape, 2 * len(self.workload.labels) + 1)

    def predict(self, fit: Fit, card: Card) -> Candidate:
        """Peak and time of one Fit on one card."""
        assert card.compute_capability is not None
        wanted = self.demand(fit.micro_batch_tokens)
        share = self.workload.dev_tokens / max(1, self.workload.tokens)
        crf = self.workload.job.head == "crf"
        template = self.template(fit, card.compute_capability)
        seconds = epoch_seconds(template, fit, card, wanted.shapes, wanted.steps, share, crf=crf)
        peak = self.reserved_bytes(fit, card.compute_capability) + card.context_bytes
        return Candidate(fit, peak, seconds)

    def best(self, card: Card, allow: Allow = "rounding") -> Found:
        """The fastest Fit of the lowest level that fits."""
        found = Found(None)
        limit = usable_bytes(card)
        for level in ladder(card, allow, self.layers):
            candidates = [
                self.predict(fit.model_copy(update={"micro_batch_tokens": tokens}), card)
                for fit in level
                for tokens in self.budgets()
            ]
            fitting = [c for c in candidates if c.peak_bytes <= limit]
            found.rejected += _too_large([c for c in candidates if c.peak_bytes > limit], limit, bool(fitting))
            if fitting:
                found.best = min(fitting, key=lambda c: c.epoch.middle)
                found.rejected += _slower(fitting, found.best)
                break
        return found

    def leanest(self, allow: Allow, card: Card) -> Candidate:
        """What needs least memory with the batch kept, whatever its time: one window a pass, every layer recomputed."""
        lean = Fit(micro_batch_tokens=self.workload.longest, checkpoint_every=1)
        fits = [lean] if allow == "exact" else [lean.model_copy(update={"optimizer": "adamw_8bit"})]
        if allow == "different":
            fits.append(fits[0].model_copy(update={"frozen_layers": self.layers // 2}))
        return min((self.predict(fit, card) for fit in fits), key=lambda c: c.peak_bytes)


def _memory_key(fit: Fit) -> tuple[object, ...]:
    return fit.precision, fit.attention, fit.checkpoint_every, fit.optimizer, fit.frozen_layers


def gib(count_bytes: int) -> str:
    return f"{count_bytes / 2**30:.1f}"


def _too_large(candidates: list[Candidate], limit: int, some_fit: bool) -> list[RejectedFit]:
    """The largest that failed when others fit, the leanest when none did."""
    if not candidates:
        return []
    pick: Callable[..., Candidate] = max if some_fit else min
    shown = pick(candidates, key=lambda c: c.peak_bytes)
    reason = _("needs {need} GiB of {usable} usable", need=gib(shown.peak_bytes), usable=gib(limit))
    return [RejectedFit(fit=shown.fit, fidelity=fidelity_of(shown.fit), reason=reason)]


def _slower(candidates: list[Candidate], best: Candidate) -> list[RejectedFit]:
    others = sorted((c for c in candidates if c is not best), key=lambda c: c.epoch.middle)[:2]
    return [
        RejectedFit(
            fit=c.fit,
            fidelity=fidelity_of(c.fit),
            reason=_("{times} x as long", times=f"{c.epoch.middle / best.epoch.middle:.2f}"),
        )
        for c in others
    ]
