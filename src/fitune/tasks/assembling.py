"""Job + Fit -> model, optimizer, stepper: the ONE step that both planning's simulator and training run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fitune.hf import ATTENTION, CannotPack, LoadedModel, Step, apply_fit, make_optimizer, parameter_groups, to_device
from fitune.messages import _
from fitune.microbatch import Budget, Stepper, StepResult
from fitune.tasks.classification import ClassificationTask
from fitune.tasks.crf import LinearChainCrf
from fitune.tasks.evaluation import Task
from fitune.tasks.learner import Learner
from fitune.tasks.ner import NerTask
from fitune.values import Example, Fit, Job, Refusal


@dataclass(frozen=True)
class StepMachine:
    """All that an optimizer step needs besides its data."""

    learner: Learner
    optimizer: torch.optim.Optimizer
    stepper: Stepper
    max_grad_norm: float

    def run(self, step: Step) -> StepResult:
        """Loss, gradient, clipping and update; gradients are set free afterwards."""
        self.learner.train()
        result = self.stepper.run(step)
        if self.max_grad_norm > 0:
            nn.utils.clip_grad_norm_(self.learner.parameters(), self.max_grad_norm)
        self.optimizer.step()
        self.learner.zero_grad()
        return result


def make_task(job: Job, labels: Sequence[str], *, multi_label: bool = False, pairs: bool = False) -> Task:
    """The task of a resolved Job (task, head and max_length chosen)."""
    if job.task == "ner":
        return NerTask(tuple(labels), job.head or "softmax", job.max_length)
    if len(labels) < 2 and not multi_label:
        raise Refusal(
            _("there is one class only: {label}", label=next(iter(labels), "")),
            where=job.train,
            next_step=_("A classifier needs rows of at least two classes."),
            code="FT130",
        )
    return ClassificationTask(tuple(labels), multi_label, job.max_length, (), pairs)


def class_weights(job: Job, task: Task, examples: Sequence[Example]) -> NDArray[np.float64] | None:
    """Weight of each model class, shape (C,), or None. "balanced": rows / (classes x rows of the class), as
    scikit-learn has it. For entities the weight of a type goes to its B and I, and O keeps 1 (or its own)."""
    if job.class_weights is None:
        return None
    if task.head == "crf":
        raise Refusal(
            _("class weights have no meaning for a CRF, whose loss is that of whole sequences"),
            where="class_weights",
            next_step=_("Set head to softmax, or leave class_weights out."),
            code="FT504",
        )
    if isinstance(job.class_weights, dict):
        unknown = sorted(set(job.class_weights) - set(task.labels) - {"O"})
        if unknown:
            raise Refusal(
                _("class_weights names labels that the data does not have: {labels}", labels=", ".join(unknown)),
                where="class_weights",
                next_step=_("The labels are: {labels}", labels=", ".join(task.labels)),
                code="FT504",
            )
        weight = {label: job.class_weights.get(label, 1.0) for label in (*task.labels, "O")}
    else:
        counts = Counter(label for example in examples for label in _labels_of(example))
        total = sum(counts.values())
        weight = {label: total / (len(task.labels) * max(1, counts[label])) for label in task.labels} | {"O": 1.0}
    return np.array([weight[name if task.name == "classification" else name[2:] or "O"] for name in task.classes])


def _labels_of(example: Example) -> list[str]:
    return [span.label for span in example.spans or ()] + list(example.labels or ())


def make_learner(
    job: Job,
    fit: Fit,
    task: Task,
    load_model: Callable[..., LoadedModel],
    *,
    weights: NDArray[np.float64] | None = None,
) -> Learner:
    """The model with its loss, knobs applied.

    Args:
        load_model: ``hf.load_model`` with its folder bound, or a maker of random (or meta) weights for a simulation;
            called with the class names, ``task``, ``multi_label`` and ``attention``, it gives a ``LoadedModel``.
        weights: of the classes, shape (C,).
    """
    if task.head == "crf" and job.label_smoothing:
        raise Refusal(
            _("label smoothing has no meaning for a CRF, whose loss is that of whole sequences"),
            where="label_smoothing",
            next_step=_("Set head to softmax, or label_smoothing to 0."),
            code="FT504",
        )
    loaded = load_model(task.classes, task=task.name, multi_label=task.multi_label, attention=ATTENTION[fit.attention])
    apply_fit(loaded.model, fit)
    learner = Learner(
        loaded.model,
        new_weights=loaded.new_weights,
        crf=LinearChainCrf(task.classes) if task.head == "crf" else None,
        multi_label=task.multi_label,
        class_weights=None if weights is None else torch.tensor(weights, dtype=torch.float32),
        label_smoothing=job.label_smoothing,
        precision=fit.precision,
    )
    if fit.attention == "packed" and not next(learner.parameters()).is_meta:
        try:
            learner.run_packed()
        except CannotPack as error:
            step = _("Set attention to sdpa, or leave it out.")
            raise Refusal(str(error), where="attention", next_step=step) from error
    return learner


def make_optimizer_of(learner: Learner, job: Job, fit: Fit) -> torch.optim.Optimizer:
    """AdamW (or what the Fit says) with separate rates for encoder and head."""
    return make_optimizer(parameter_groups(learner.model, learner.crf, job, learner.new_weights), fit.optimizer)


def assemble(job: Job, fit: Fit, learner: Learner) -> StepMachine:
    """The optimizer step of a resolved Job on a Fit. ``learner`` stands on its device already."""
    device = next(learner.parameters()).device
    budget = Budget(tokens=fit.micro_batch_tokens, windows=fit.micro_batch)

    def loss_sum(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return learner(**to_device(learner.pack(inputs), device))[0]

    stepper = Stepper(loss_sum, learner, budget=budget)
    return StepMachine(learner, make_optimizer_of(learner, job, fit), stepper, job.max_grad_norm)
