"""The model of a Job on the meta device: from its own config where it lies here, else from a known checkpoint's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fitune.hf import EMBEDDED, LoadedModel, local_folder, resolve
from fitune.messages import _
from fitune.values import Refusal

_BASE = {"vocab_size": 21128, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
_LARGE = {**_BASE, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
_SMALL = {**_BASE, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}

PUBLISHED: dict[str, tuple[str, dict[str, int]]] = {
    "bert-base-chinese": ("bert", _BASE),
    "chinese-roberta-wwm-ext": ("bert", _BASE),
    "chinese-roberta-wwm-ext-large": ("bert", _LARGE),
    "rbt3": ("bert", {**_BASE, "num_hidden_layers": 3}),
    "chinese-macbert-base": ("bert", _BASE),
    "chinese-macbert-large": ("bert", _LARGE),
    "chinese-electra-180g-base-discriminator": ("electra", {**_BASE, "embedding_size": 768, "intermediate_size": 3072}),
    "chinese-electra-180g-small-discriminator": ("electra", {**_SMALL, "embedding_size": 128}),
    "chinese-lert-base": ("bert", _BASE),
    "chinese-lert-small": ("bert", _SMALL),
}
"""Short name -> model type and what its published config.json says; anything else is the type's default."""


def folder_here(name: str, task: str | None) -> Path | None:
    """The folder of a model that lies on this disk; nothing is fetched for a plan."""
    path = Path(name).expanduser()
    if name == EMBEDDED or (path.is_dir() and (path / "config.json").exists()):
        return resolve(name, task).folder
    return None if path.is_dir() else local_folder(name)


def config_of(name: str, task: str | None) -> tuple[Any, str]:
    """The config of a model, and where it is from: its folder, or ``published``.

    Raises:
        Refusal: it is neither here nor among the known ones.
    """
    from transformers import AutoConfig

    if folder := folder_here(name, task):
        return AutoConfig.from_pretrained(str(folder)), str(folder)
    kind, fields = PUBLISHED.get(name.rpartition("/")[2], ("", {}))
    if not kind:
        raise Refusal(
            _("the model {name} is not on this disk, so its size is not known", name=name),
            where="model",
            next_step=_("Name its folder, or one of: {names}", names=", ".join(PUBLISHED)),
            code="FT352",
        )
    return AutoConfig.for_model(kind, **fields), "published"


class MetaLoader:
    """Stands for ``hf.load_model``: the same model without weights, on the meta device."""

    def __init__(self, config: Any) -> None:
        self._config = config

    def __call__(
        self, labels: Sequence[str], *, task: str, multi_label: bool = False, attention: str = "sdpa"
    ) -> LoadedModel:
        import copy

        import torch
        from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

        config = copy.deepcopy(self._config)
        config.num_labels = len(labels)
        config.use_cache = False
        automatic: Any = AutoModelForTokenClassification if task == "ner" else AutoModelForSequenceClassification
        with torch.device("meta"):
            return LoadedModel(automatic.from_config(config, attn_implementation=attention), (), ())
