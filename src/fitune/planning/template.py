"""One simulated training step as a template for all micro-batches: traced at two shapes, replayed at any.

A step runs the same ops whatever its shape, so every storage has a size of c * B**i * L**j (B windows, L tokens): two
traces tell i and j, and a test holds the result against direct simulation. Where two shapes leave a doubt (a size that
is a sum), the larger c is taken: a template may say a little too much, never too little.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fitune.memory import Allocator, Semantics, Storage, Trace, TrainingStep, simulate, workspace_bytes
from fitune.planning.models import MetaLoader
from fitune.planning.workload import Shape
from fitune.tasks import Learner, make_learner, make_optimizer_of, make_task
from fitune.values import Fit, Job

_torch: Any = torch
_MARK = (1, 1, 1, 1, 1, 1, 1)
"""Shape of a tensor that nothing else has: it separates the passes of a step."""
ALIGNED = ((28, 128), (42, 256))
UNALIGNED = ((28, 124), (42, 248))
"""Shapes that are traced: more than 3,072 tokens (fewer change embedding's backward), fewer than the vocabulary has
rows; ratios 1.5 and 2, whose products tell the powers apart. A length that is no multiple of 16 has its attention mask
copied."""


@dataclass(frozen=True)
class OpGroup:
    """Equal ops of a pass, for estimates of time."""

    count: int
    flops: float
    moved_bytes: float
    moved_fixed_bytes: float
    powers: tuple[int, int]
    dtype: str
    attention: bool


@dataclass(frozen=True)
class Replayed:
    """A sequence of steps on an allocator without a limit. All bytes are the allocator's."""

    allocated_bytes: int
    reserved_bytes: int
    timeline: tuple[tuple[int, int], ...] = ()
    """(allocated, reserved) after every event of the last step, when asked for."""
    peak_alive: tuple[tuple[Storage, int], ...] = ()
    """Storages alive at the peak of the last step with their bytes, largest first, when asked for."""
    phases: tuple[str, ...] = ()


class Template:
    """A Fit's optimizer step without its micro-batches."""

    def __init__(self, small: Trace, large: Trace, shapes: tuple[Shape, Shape], parameters: int, tensors: int) -> None:
        self._base, larger = shapes
        self.base = self._base
        self.parameters, self.tensors = parameters, tensors
        self.storages = small.storages
        powers, factors = _powers(small, large, self._base, larger)
        self._powers = np.array(powers, np.int64).reshape(-1, 2)
        self._sizes = np.array([s.size_bytes for s in small.storages], np.float64) * np.array(factors)
        self._workspaces = set(small.workspaces)
        parts = _parts(small)
        self._resident, self._first, self._later = parts[0], parts[1:4], parts[4:7]
        self.groups = _op_groups(small, large, self._base, larger)

    def sizes(self, shape: Shape) -> NDArray[np.int64]:
        """Bytes of every storage at a shape."""
        scale = np.array([shape[0] / self._base[0], shape[1] / self._base[1]])
        return np.ceil(self._sizes * (scale**self._powers).prod(1) - 1e-6).astype(np.int64)

    def replay(
        self, steps: Sequence[Sequence[Shape]], compute_capability: tuple[int, int] = (8, 0), *, detail: bool = False
    ) -> Replayed:
        """Run optimizer steps of these micro-batches, one after the other, as the allocator would see them."""
        allocator = Allocator(None)
        run = _Run(allocator, self, workspace_bytes(compute_capability))
        fixed = run.sizes_of(self._base)
        run.events(self._resident, fixed)
        for number, shapes in enumerate(steps):
            opening, more, closing = self._later if number else self._first
            if detail and number == len(steps) - 1:
                run.watch()
            for index, shape in enumerate(shapes):
                run.events(more if index else opening, run.sizes_of(shape))
            run.events(closing, fixed, phase="optimizer")
        peak = (allocator.peak_allocated_bytes, allocator.peak_reserved_bytes)
        return Replayed(*peak, tuple(run.timeline), run.peak_alive(), tuple(run.phases))

    @property
    def workspaces(self) -> set[int]:
        return self._workspaces


class _Run:
    def __init__(self, allocator: Allocator, template: Template, workspace: int) -> None:
        self._allocator, self._template, self._workspace = allocator, template, workspace
        self._blocks: dict[int, Any] = {}
        self._known: dict[Shape, list[int]] = {}
        self._bytes: dict[int, int] = {}
        self._watching, self._most, self._phase = False, -1, "forward"
        self._alive: dict[int, int] = {}
        self.timeline: list[tuple[int, int]] = []
        self.phases: list[str] = []

    def sizes_of(self, shape: Shape) -> list[int]:
        if shape not in self._known:
            sizes = self._template.sizes(shape).tolist()
            for index in self._template.workspaces:
                sizes[index] = self._workspace
            self._known[shape] = sizes
        return self._known[shape]

    def watch(self) -> None:
        self._watching = True

    def events(self, events: list[int], sizes: list[int], phase: str = "") -> None:
        allocator, blocks = self._allocator, self._blocks
        for event in events:
            if event < 0:
                block = blocks.pop(-event - 1, None)
                if block is not None:
                    allocator.free(block)
            else:
                # A micro-batch's last tensors die in the next one's first op; where it comes again, they die here.
                old = blocks.pop(event - 1, None)
                if old is not None:
                    allocator.free(old)
                blocks[event - 1] = allocator.allocate(sizes[event - 1])
                self._bytes[event - 1] = sizes[event - 1]
            if self._watching:
                self._note(event, phase)

    def _note(self, event: int, phase: str) -> None:
        allocator = self._allocator
        self.timeline.append((allocator.allocated_bytes, allocator.reserved_bytes))
        self.phases.append(
            self._template.storages[abs(event) - 1].phase if event > 0 or not self.phases else self.phases[-1]
        )
        if allocator.allocated_bytes > self._most:
            self._most = allocator.allocated_bytes
            self._alive = dict.fromkeys(self._blocks, 0)

    def peak_alive(self) -> tuple[tuple[Storage, int], ...]:
        found = [(self._template.storages[n], self._bytes[n]) for n in self._alive]
        return tuple(sorted(found, key=lambda pair: -pair[1]))


def trace_template(
    job: Job, fit: Fit, labels: tuple[str, ...], loader: MetaLoader, *, aligned: bool, segments: bool
) -> Template:
    """Simulate ``fit`` at two shapes. A CRF is left out (see ``crf_bytes``): its loop follows the data."""
    plain = job.model_copy(update={"head": "softmax" if job.task == "ner" else None, "class_weights": None})
    plain = plain.model_copy(update={"learning_rate": 1e-5, "head_learning_rate": 1e-3})
    task = make_task(plain, labels, multi_label=bool(job.multi_label))
    shapes = ALIGNED if aligned else UNALIGNED
    traces: list[Trace] = []
    learner: Learner | None = None
    for shape, steps in zip(shapes, (2, 1), strict=True):
        eight_bit = fit.optimizer == "adamw_8bit"
        learner = make_learner(plain, fit, task, loader)
        learner.train()
        # The real 8-bit optimizer needs a GPU library; the simulator has its memory.
        optimizer = (
            TrainingStep(learner, Fit(optimizer="adamw_8bit"), ()).optimizer
            if eight_bit
            else make_optimizer_of(learner, plain, fit)
        )
        step = _Step(plain, fit, learner, optimizer, shape, len(labels), segments)
        # With a mask every card from sm50 on takes the same kernel, but for bf16 where it is emulated.
        sm = (8, 0) if fit.precision == "fp32" else (7, 5)
        traces.append(simulate(step, resident=[learner], steps=steps, semantics=Semantics(compute_capability=sm)))
    assert learner is not None
    trained = [p for p in learner.parameters() if p.requires_grad]
    return Template(traces[0], traces[1], shapes, sum(p.numel() for p in trained), len(trained))


class _Step:
    """``tasks.StepMachine``'s step of two equal micro-batches, with marks between its parts and without the Stepper's
    bookkeeping, which allocates nothing."""

    def __init__(
        self, job: Job, fit: Fit, learner: Learner, optimizer: Any, shape: Shape, classes: int, segments: bool
    ) -> None:
        self._job, self._fit, self._learner, self._optimizer = job, fit, learner, optimizer
        self._shape, self._classes, self._segments = shape, classes, segments
        self._scale = torch.empty((), device="meta") if fit.precision == "fp16" else None

    def __call__(self) -> None:
        for _index in range(2):
            torch.empty(_MARK, dtype=torch.int8, device="meta")
            loss = self._learner(**self._inputs())[0] / 7.0
            (loss if self._scale is None else loss * self._scale).backward()
            del loss
        torch.empty(_MARK, dtype=torch.int8, device="meta")
        if self._scale is not None:
            gradients = [p.grad for p in self._learner.parameters() if p.grad is not None]
            found, inverse = torch.zeros((), device="meta"), torch.ones((), device="meta")
            _torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)
        if self._job.max_grad_norm > 0:
            torch.nn.utils.clip_grad_norm_(self._learner.parameters(), self._job.max_grad_norm)
        self._optimizer.step()
        self._learner.zero_grad()

    def _inputs(self) -> dict[str, torch.Tensor]:
        names = ["input_ids", "attention_mask"] + (["token_type_ids"] if self._segments else [])
        inputs = {name: torch.empty(self._shape, dtype=torch.long, device="meta") for name in names}
        batch = self._shape[0]
        if self._job.task == "ner":
            inputs["labels"] = torch.empty(self._shape, dtype=torch.long, device="meta")
        elif self._job.multi_label:
            inputs["labels"] = torch.empty(batch, self._classes, device="meta")
        else:
            inputs["labels"] = torch.empty(batch, dtype=torch.long, device="meta")
        if self._job.task != "ner":
            inputs["weights"] = torch.empty(batch, device="meta")
        return inputs


def crf_bytes(shape: Shape, classes: int) -> int:
    """What a CRF's forward keeps for its backward, at most: per token the scores of all transitions and eleven vectors
    over the classes, each a block of its own of at least 512 bytes (``tests/planning`` measures it)."""
    batch, length = shape

    def block(values: int) -> int:
        return max(512, -(-values * 4 // 512) * 512)

    return length * (2 * block(batch * classes * classes) + 11 * block(batch * classes))


def _powers(small: Trace, large: Trace, base: Shape, larger: Shape) -> tuple[list[tuple[int, int]], list[float]]:
    """For every storage of ``small`` the powers of B and L, and a factor >= 1 where the two shapes disagree."""
    if any(a.op != b.op for a, b in zip(small.storages, large.storages, strict=False)):
        raise AssertionError("the two traces ran different ops")
    candidates = [(i, j) for i in (0, 1) for j in (0, 1, 2)]
    ratios = np.array([(larger[0] / base[0]) ** i * (larger[1] / base[1]) ** j for i, j in candidates])
    known: dict[Any, tuple[tuple[int, int], float]] = {}
    for a, b in zip(small.storages, large.storages, strict=False):
        ratio = b.size_bytes / a.size_bytes
        best = int(np.abs(np.log(ratios / ratio)).argmin())
        known[_key(a)] = (candidates[best], max(1.0, ratio / ratios[best]))
    # The second step is not in the large trace: it does what the first did; what is new in it has no shape of a batch.
    found = [known.get(_key(s), ((0, 0), 1.0)) for s in small.storages]
    return [powers for powers, _factor in found], [factor for _powers, factor in found]


def _key(storage: Storage) -> Any:
    return storage.op, storage.module, storage.phase, storage.shape, storage.dtype, storage.size_bytes


def _parts(trace: Trace) -> list[list[int]]:
    """Events split at the marks: resident, then opening, further pass and closing of each step; marks left out."""
    marks = {n for n, s in enumerate(trace.storages) if s.shape == _MARK and s.dtype == "int8"}
    parts: list[list[int]] = [[]]
    for event in trace.events:
        if abs(event) - 1 in marks:
            if event > 0:
                parts.append([])
            continue
        parts[-1].append(event)
    if len(parts) != 7:
        raise AssertionError(f"{len(parts)} parts instead of 7")
    return parts


def _op_groups(small: Trace, large: Trace, base: Shape, larger: Shape) -> tuple[OpGroup, ...]:
    """Ops of a pass that finds gradients, equal ones together."""
    a, b = _second_pass(small), _second_pass(large)
    tokens = (base[0] * base[1], larger[0] * larger[1])
    squares = [((larger[0] / base[0]) ** i * (larger[1] / base[1]) ** j, (i, j)) for i in (0, 1) for j in (0, 1, 2)]
    groups: dict[OpGroup, int] = {}
    for x, y in zip(a, b, strict=True):
        measured, grown = (x.flops, y.flops) if x.flops else (x.moved_bytes, y.moved_bytes)
        if not x.moved_bytes:
            continue
        powers = min(squares, key=lambda s: abs(s[0] - grown / measured))[1]
        slope = max(0.0, (y.moved_bytes - x.moved_bytes) / (tokens[1] - tokens[0]))
        quadratic = powers == (1, 2)
        fixed = 0.0 if quadratic else max(0.0, x.moved_bytes - slope * tokens[0])
        scaled = x.moved_bytes - fixed
        moved_powers = powers if quadratic else (1, 1)
        attention = "attention" in x.name or x.name in ("bmm", "baddbmm")
        group = OpGroup(1, x.flops, scaled, fixed, powers if x.flops else moved_powers, x.dtype, attention)
        groups[group] = groups.get(group, 0) + 1
    return tuple(dataclasses.replace(group, count=count) for group, count in groups.items())


def _second_pass(trace: Trace) -> list[Any]:
    marks = [n for n, op in enumerate(trace.ops) if op.name == "empty" and op.dtype == "int8"]
    return [op for op in trace.ops[marks[1] + 1 : marks[2]] if op.name != "empty"]
