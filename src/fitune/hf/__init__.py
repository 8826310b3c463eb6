"""All that knows transformers' private shape: the Trainer, models and where they come from, collating, version
differences. Names load on first use, so that ``fitune models`` needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_FILE_OF = {
    "cache_directory": "cache",
    "COUNT": "collate",
    "IGNORED": "collate",
    "Columns": "collate",
    "EpochLoader": "collate",
    "EpochOrder": "collate",
    "Step": "collate",
    "StepData": "collate",
    "compiled_forward": "compiling",
    "reason_of": "compiling",
    "stop_compiling": "compiling",
    "no_bars": "compat",
    "training_arguments": "compat",
    "quicken_dropout": "dropout",
    "EMBEDDED": "embedded",
    "embedded_folder": "embedded",
    "embedded_is_here": "embedded",
    "Resolved": "hub",
    "local_folder": "hub",
    "resolve": "hub",
    "KNOWN": "known",
    "KnownModel": "known",
    "KeptEncoder": "keeping",
    "give_memory_back": "lightly",
    "keep_memory": "lightly",
    "keep_tokens": "keeping",
    "light_imports": "lightly",
    "ListedModel": "listing",
    "list_models": "listing",
    "ATTENTION": "knobs",
    "apply_fit": "knobs",
    "encoder_layers": "knobs",
    "make_optimizer": "knobs",
    "parameter_groups": "knobs",
    "LoadedModel": "models",
    "load_model": "models",
    "load_tokenizer": "models",
    "make_encoder": "models",
    "to_device": "moving",
    "with_ready_mask": "moving",
    "LAYOUT": "packing",
    "CannotPack": "packing",
    "Packing": "packing",
    "NonFiniteLoss": "trainer",
    "Trainer": "trainer",
}

__all__ = sorted(_FILE_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from fitune.hf.cache import cache_directory as cache_directory
    from fitune.hf.collate import COUNT as COUNT
    from fitune.hf.collate import IGNORED as IGNORED
    from fitune.hf.collate import Columns as Columns
    from fitune.hf.collate import EpochLoader as EpochLoader
    from fitune.hf.collate import EpochOrder as EpochOrder
    from fitune.hf.collate import Step as Step
    from fitune.hf.collate import StepData as StepData
    from fitune.hf.compat import no_bars as no_bars
    from fitune.hf.compat import training_arguments as training_arguments
    from fitune.hf.compiling import compiled_forward as compiled_forward
    from fitune.hf.compiling import reason_of as reason_of
    from fitune.hf.compiling import stop_compiling as stop_compiling
    from fitune.hf.dropout import quicken_dropout as quicken_dropout
    from fitune.hf.embedded import EMBEDDED as EMBEDDED
    from fitune.hf.embedded import embedded_folder as embedded_folder
    from fitune.hf.embedded import embedded_is_here as embedded_is_here
    from fitune.hf.hub import Resolved as Resolved
    from fitune.hf.hub import local_folder as local_folder
    from fitune.hf.hub import resolve as resolve
    from fitune.hf.keeping import KeptEncoder as KeptEncoder
    from fitune.hf.keeping import keep_tokens as keep_tokens
    from fitune.hf.knobs import ATTENTION as ATTENTION
    from fitune.hf.knobs import apply_fit as apply_fit
    from fitune.hf.knobs import encoder_layers as encoder_layers
    from fitune.hf.knobs import make_optimizer as make_optimizer
    from fitune.hf.knobs import parameter_groups as parameter_groups
    from fitune.hf.known import KNOWN as KNOWN
    from fitune.hf.known import KnownModel as KnownModel
    from fitune.hf.lightly import give_memory_back as give_memory_back
    from fitune.hf.lightly import keep_memory as keep_memory
    from fitune.hf.lightly import light_imports as light_imports
    from fitune.hf.listing import ListedModel as ListedModel
    from fitune.hf.listing import list_models as list_models
    from fitune.hf.models import LoadedModel as LoadedModel
    from fitune.hf.models import load_model as load_model
    from fitune.hf.models import load_tokenizer as load_tokenizer
    from fitune.hf.models import make_encoder as make_encoder
    from fitune.hf.moving import to_device as to_device
    from fitune.hf.moving import with_ready_mask as with_ready_mask
    from fitune.hf.packing import LAYOUT as LAYOUT
    from fitune.hf.packing import CannotPack as CannotPack
    from fitune.hf.packing import Packing as Packing
    from fitune.hf.trainer import NonFiniteLoss as NonFiniteLoss
    from fitune.hf.trainer import Trainer as Trainer


def __getattr__(name: str) -> Any:
    if name not in _FILE_OF:
        raise AttributeError(f"module 'fitune.hf' has no attribute {name!r}")
    value = getattr(import_module(f"fitune.hf.{_FILE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_FILE_OF))
