"""All that knows transformers' private shape: the Trainer, collating, knobs, version differences."""

from fitune.hf.collate import IGNORED, Columns, EpochLoader, EpochOrder, Step, StepData, batches_by_length
from fitune.hf.compat import training_arguments
from fitune.hf.knobs import ATTENTION, apply_fit, encoder_layers, make_optimizer, parameter_groups
from fitune.hf.trainer import NonFiniteLoss, Trainer

__all__ = [
    "ATTENTION",
    "IGNORED",
    "Columns",
    "EpochLoader",
    "EpochOrder",
    "NonFiniteLoss",
    "Step",
    "StepData",
    "Trainer",
    "apply_fit",
    "batches_by_length",
    "encoder_layers",
    "make_optimizer",
    "parameter_groups",
    "training_arguments",
]
