"""Differences between the supported transformers versions (4.57 .. 5.x), each dated, all of them here."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import transformers
from transformers import TrainingArguments


def training_arguments(**fields: Any) -> TrainingArguments:
    """TrainingArguments by today's names, whatever the version calls them.

    ``report_to``: 4.x took None for "all", 5.0 takes "none" alone (2025-12); "none" works in both.
    ``warmup_ratio``: deprecated in 5.0, gone later; ``warmup_steps`` below 1 is a share there, so callers that mean a
    number of steps give ``warmup_steps``.
    """
    known = inspect.signature(TrainingArguments.__init__).parameters
    renamed = {"eval_strategy": "evaluation_strategy", "processing_class": "tokenizer"}
    chosen: dict[str, Any] = {}
    for name, value in fields.items():
        if name in known:
            chosen[name] = value
        elif renamed.get(name) in known:
            chosen[renamed[name]] = value
        else:
            raise TypeError(f"TrainingArguments of transformers {transformers.__version__} has no {name!r}")
    return TrainingArguments(**chosen)


@contextmanager
def no_bars() -> Generator[None, None, None]:
    """No progress bars of transformers' own around loading and saving: fitune shows its own."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def loss_is_shifted(model: Any) -> bool:
    """Whether the model's loss predicts the next token (causal language models that are no encoder-decoders)."""
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        return False
    return getattr(model, "loss_type", None) == "ForCausalLM"


def takes_ready_mask(model: Any) -> bool:
    """Whether an attention mask of four dimensions reaches the model's fused attention as it is: where the model makes
    its mask by transformers' ``create_bidirectional_mask`` alone (BERT and its relatives from 5.0, 2025-12)."""
    made_by = vars(sys.modules[type(model).__module__])
    return (
        getattr(model.config, "_attn_implementation", "") == "sdpa"
        and "create_bidirectional_mask" in made_by
        and "create_bidirectional_sliding_window_mask" not in made_by
        and not getattr(model.config, "is_decoder", False)
    )
