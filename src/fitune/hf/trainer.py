"""Hugging Face's Trainer with a right gradient: one optimizer step, cut as memory asks, equal whatever the cut.

The stock Trainer sums the means of its accumulation batches for heads that ignore ``num_items_in_batch``
(huggingface/transformers#47688: loss and gradient grow with ``gradient_accumulation_steps``). Here a step of the
dataloader is a whole optimizer step, ``microbatch.Stepper`` cuts it, and the loss is the mean over all its items.
"""

# The Trainer types its model as optional, though it is there whenever one of its methods runs.
# pyright: reportOptionalMemberAccess=false
from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from transformers.trainer_utils import EvalLoopOutput

from fitune.hf.checkpoints import newest_whole
from fitune.hf.collate import COUNT, EpochLoader, EpochOrder, PaddedStep, Step, StepData, loss_counts
from fitune.hf.compat import loss_is_shifted
from fitune.hf.compiling import reason_of, stop_compiling
from fitune.hf.guarding import Checkpointing, Compilation, FusedAttention, Guard
from fitune.hf.moving import to_device
from fitune.messages import _
from fitune.microbatch import Budget, Change, Stepper, StepResult
from fitune.values import Fit, Refusal

logger = logging.getLogger(__name__)
R = TypeVar("R")

SMALLEST_SCALE = 1.0
"""A loss scale of fp16 below which the step is not representable in fp16 at all."""

STEPS_TO_DOUBLE = 2000
"""Good steps after which the loss scale doubles, as torch's GradScaler does."""


class NonFiniteLoss(Refusal):
    """Loss or gradient of a step is NaN or infinite; the optimizer has not moved. ``loss`` is its value."""

    exit_code = 1

    def __init__(self, loss: float, step: int, places: list[str]) -> None:
        shown = ", ".join(places[:16]) + (" ..." if len(places) > 16 else "")
        super().__init__(
            _("the loss or the gradient of step {step} is not a finite number (loss {loss})", step=step, loss=loss),
            where=shown,
            next_step=_("Nothing was learned from it. Look at these rows; a lower learning_rate or fp32 often helps."),
            code="FT501",
        )
        self.loss, self.step, self.places = loss, step, places


class Trainer(transformers.Trainer):
    """Drop-in: ``from fitune import Trainer``; ``per_device_train_batch_size x gradient_accumulation_steps`` keeps its
    meaning (examples per optimizer step and device) and no longer has to fit into memory at once.

    Args:
        fit: how a step is laid out in memory (micro_batch, micro_batch_tokens). By default a script's own
            ``per_device_train_batch_size`` is the micro-batch, as with the stock Trainer.
        *args, **kwargs: as ``transformers.Trainer``. A ``train_dataset`` that is a ``StepData`` yields whole steps in
            the order of (seed, epoch); an evaluation dataset with ``evaluate(model, device)`` streams itself.
    """

    def __init__(self, *args: Any, fit: Fit | None = None, **kwargs: Any) -> None:
        arguments = kwargs.pop("args", None) if len(args) < 2 else args[1]
        arguments = arguments or transformers.TrainingArguments(output_dir="tmp_trainer")
        if fit is None and arguments.gradient_accumulation_steps > 1:
            fit = Fit(micro_batch=arguments.per_device_train_batch_size)
        self.fit = fit or Fit()
        self.last_result: StepResult | None = None
        self.loss_scale, self._good_steps, self._scales_now = 2.0**16, 0, False
        self._stepper: Stepper | None = None
        arguments = _one_step_a_batch(arguments)
        if len(args) >= 2:
            super().__init__(args[0], arguments, *args[2:], **kwargs)
        else:
            super().__init__(*args, args=arguments, **kwargs)
        self.add_callback(Guard(self))

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        """As the stock Trainer; ``resume_from_checkpoint=True`` means the newest checkpoint that is whole."""
        if resume_from_checkpoint is True:
            resume_from_checkpoint = newest_whole(self.args.output_dir, self.notice)
        return super().train(resume_from_checkpoint, *args, **kwargs)

    # -- the optimizer step -------------------------------------------------------------------------------------

    def training_step(self, model: nn.Module, inputs: Any, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """Gradient of a whole optimizer step; returns its loss (0-dim, detached).

        Raises:
            NonFiniteLoss: before the optimizer moves.
        """
        model.train()
        if callable(getattr(self.optimizer, "train", None)):
            self.optimizer.train()  # pyright: ignore[reportOptionalMemberAccess,reportAttributeAccessIssue]
        step = inputs if isinstance(inputs, Step) else self._padded_step(inputs)
        stepper = self.stepper(model)
        result = self.or_uncompiled(model, lambda: self._run(stepper, step))
        if not torch.isfinite(result.loss):
            model.zero_grad()
            places = step.places() if isinstance(step, Step) else []
            raise NonFiniteLoss(result.loss.item(), self.state.global_step + 1, places)
        self.last_result = result
        return result.loss

    def or_uncompiled(self, model: nn.Module, run: Callable[[], R]) -> R:
        """``run()``, which leaves no trace when it raises; where a compiler may be to blame, again without it."""
        try:
            return run()
        except Exception as error:
            if isinstance(error, Refusal) or not stop_compiling(model):
                raise
            step, reason = self.state.global_step + 1, reason_of(error)
        self.notice("FT424", _("step {step} goes on without torch.compile: {reason}", step=step, reason=reason))
        return run()

    def _run(self, stepper: Stepper, step: Any) -> StepResult:
        scaled = isinstance(step, Step) and self._scales_loss
        return self._run_scaled(stepper, step) if scaled else stepper.run(step)

    def stepper(self, model: nn.Module) -> Stepper:
        """The Stepper that cuts this Trainer's steps, made on first use."""
        if self._stepper is None:
            budget = Budget(tokens=self.fit.micro_batch_tokens, windows=self.fit.micro_batch)
            self._stepper = Stepper(
                lambda inputs: self._loss_sum(model, inputs),
                model,
                budget=budget,
                backward=self._backward,
                knobs=[Compilation(model), FusedAttention(model), Checkpointing(model)],
                on_change=lambda change: self.changed(change),
            )
        return self._stepper

    def _loss_sum(self, model: nn.Module, inputs: dict[str, Any]) -> Tensor:
        """Summed loss of a micro-batch: the learner's own sum, or a Hugging Face model's mean times its items."""
        count = inputs.pop(COUNT, None)
        if count is None and hasattr(self.model, "pack"):
            inputs = self.model.pack(inputs)  # pyright: ignore[reportCallIssue] - lengths are read before they move
        # Then the stock Trainer's own: what a batch holds deeper down, and what a script overrides.
        inputs = self._prepare_inputs(to_device(inputs, self.args.device))
        if count is None:
            return model(**inputs)[0]
        if count == 0:
            # No label at all: a mean over nothing would be NaN.
            inputs = {name: value for name, value in inputs.items() if name not in self.label_names}
            return 0.0 * model(**inputs).logits.float().sum()
        items = torch.tensor(count, device=self.args.device) if self.compute_loss_func is not None else None
        with self.compute_loss_context_manager():
            loss = self.compute_loss(model, inputs, num_items_in_batch=items)
        return loss * count

    def _padded_step(self, inputs: Any) -> Any:
        main = getattr(self.model, "main_input_name", "input_ids")
        labels = inputs.get("labels")
        first = next((v for v in (inputs.get(main), labels) if isinstance(v, Tensor) and v.dim()), None)
        if first is None:
            first = next(v for v in inputs.values() if isinstance(v, Tensor) and v.dim())
        counts = loss_counts(labels, len(first), shifted=loss_is_shifted(self.model))
        step = PaddedStep(inputs, main, counts)
        if not step.total_weight:
            raise Refusal(
                _("step {step} has no label: every one is -100", step=self.state.global_step + 1),
                next_step=_("Look at the labels that your collator gives."),
                code="FT502",
            )
        return step

    def _backward(self, loss: Tensor) -> None:
        if self._scales_now:
            (loss * self.loss_scale).backward()
        else:
            self.accelerator.backward(loss)

    # -- fp16 without skipped steps -----------------------------------------------------------------------------

    @property
    def _scales_loss(self) -> bool:
        """Our own learner under fp16; a user's script has accelerate's scaler."""
        return getattr(self.model, "precision", "") == "fp16"

    def _run_scaled(self, stepper: Stepper, step: Step) -> StepResult:
        """The step under a loss scale. When the gradient overflows it runs again at a lower one: no step is skipped.
        A step that fp16 cannot hold runs, with all that follow, in a safer precision."""
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        while True:
            self._scales_now = True
            try:
                result = stepper.run(step)
            finally:
                self._scales_now = False
            overflow = torch.zeros((), device=result.loss.device)
            inverse = torch.full((), 1.0 / self.loss_scale, device=result.loss.device)
            gradients = [p.grad for p in parameters if p.grad is not None]
            torch._amp_foreach_non_finite_check_and_unscale_(gradients, overflow, inverse)  # pyright: ignore
            if not overflow.item() and torch.isfinite(result.loss):
                self._good_steps += 1
                if self._good_steps % STEPS_TO_DOUBLE == 0:
                    self.loss_scale *= 2
                return result
            self.model.zero_grad()
            if self.loss_scale <= SMALLEST_SCALE or not torch.isfinite(result.loss):
                safer = "bf16" if torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0) else "fp32"
                self.model.precision = safer  # pyright: ignore[reportArgumentType]
                step_number = self.state.global_step + 1
                self.notice(
                    "FT503", _("step {step} overflows in fp16: going on in {safer}", step=step_number, safer=safer)
                )
                return stepper.run(step)
            self.loss_scale /= 2
            self._good_steps = 0

    def changed(self, change: Change) -> None:
        """The micro-batch shrank or grew."""
        logger.warning("micro-batch: %s -> %s tokens (%s)", change.from_tokens, change.to_tokens, change.reason)

    def notice(self, code: str, text: str) -> None:
        """Tell the user something; ``training`` writes it as an Event instead."""
        logger.warning("%s %s", code, text)

    # -- data ---------------------------------------------------------------------------------------------------

    def get_train_dataloader(self) -> Any:
        """Whole steps in the order of (seed, epoch) for a StepData; else the stock loader."""
        data = self.train_dataset
        if not isinstance(data, StepData):
            return super().get_train_dataloader()
        seed = self.args.data_seed if self.args.data_seed is not None else self.args.seed
        order = EpochOrder(data, seed, rank=self.args.process_index, ranks=self.args.world_size)
        return EpochLoader(data, order, self.args.train_batch_size)

    def get_batch_samples(self, epoch_iterator: Any, num_batches: int, device: Any = None) -> tuple[list[Any], Any]:
        """No counting here: a step knows its own weight."""
        batches: list[Any] = []
        for _index in range(num_batches):
            if (batch := next(epoch_iterator, None)) is None:
                break
            batches.append(batch)
        return batches, None

    def floating_point_ops(self, inputs: Any) -> int:
        if not isinstance(inputs, Step):
            return super().floating_point_ops(inputs)
        return 6 * inputs.tokens * self._parameters_trained

    @property
    def _parameters_trained(self) -> int:
        if not hasattr(self, "_parameters_counted"):
            self._parameters_counted = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        return self._parameters_counted

    # -- evaluation that streams --------------------------------------------------------------------------------

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        data = self.eval_dataset if eval_dataset is None else eval_dataset
        if isinstance(data, str):
            data = self.eval_dataset[data]  # pyright: ignore[reportOptionalSubscript,reportIndexIssue,reportArgumentType]
        return data if hasattr(data, "evaluate") else super().get_eval_dataloader(eval_dataset)

    def evaluation_loop(
        self, dataloader: Any, description: str, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any
    ) -> EvalLoopOutput:
        """A dataset that evaluates itself keeps counts only, never the logits of a split."""
        if not hasattr(dataloader, "evaluate"):
            return super().evaluation_loop(
                dataloader, description, *args, metric_key_prefix=metric_key_prefix, **kwargs
            )
        metrics = dataloader.evaluate(self.model, self.args.device)
        named = {f"{metric_key_prefix}_{name}": value for name, value in metrics.items()}
        return EvalLoopOutput(predictions=np.empty(0), label_ids=None, metrics=named, num_samples=len(dataloader))


def _one_step_a_batch(arguments: transformers.TrainingArguments) -> transformers.TrainingArguments:
    """The same arguments with accumulation folded into the batch: the dataloader then yields whole optimizer steps."""
    folded = copy.copy(arguments)
    folded.per_device_train_batch_size *= folded.gradient_accumulation_steps
    folded.gradient_accumulation_steps = 1
    # The Stepper divides by the weight over all ranks itself.
    folded.average_tokens_across_devices = False
    # Averaging NaN away would hide what training_step stops for.
    folded.logging_nan_inf_filter = False
    if folded.n_gpu > 1:
        # DataParallel would mean over replicas of unequal weight; one process per device (torchrun) is exact.
        folded._n_gpu = 1  # pyright: ignore[reportPrivateUsage]
    return folded
