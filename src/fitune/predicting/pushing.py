"""Publishing a trained or exported model on a hub: first what would go, then, when told so, the upload."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, Literal

from fitune.messages import _
from fitune.predicting.card import write_card
from fitune.predicting.predictor import model_folder
from fitune.values import Refusal
from fitune.values.base import Value

__all__ = ["Shipment", "pack", "push"]

Hub = Literal["huggingface", "modelscope"]


class Shipment(Value):
    """What would go, and where to."""

    hub: Hub
    repository: str
    private: bool
    folder: str
    files: dict[str, int]
    """File name -> bytes."""

    @property
    def bytes_total(self) -> int:
        return sum(self.files.values())


def pack(run: str | Path, repository: str, *, hub: Hub = "huggingface", private: bool = True) -> Shipment:
    """Look at what would be uploaded; a model card is written into the folder where there is none.

    Nothing but the model's own folder goes: no training data, no events, no predictions.

    Raises:
        Refusal: no trained model there, or a repository name that no hub takes.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository, re.ASCII):
        raise Refusal(
            _("{name} is no repository name", name=repository),
            where="--to",
            next_step=_("It has the form owner/name, such as my-name/my-model."),
        )
    folder = model_folder(run)
    if not (folder / "README.md").is_file():
        write_card(folder, folder)
    files = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}
    return Shipment(hub=hub, repository=repository, private=private, folder=str(folder), files=files)


def push(shipment: Shipment) -> str:
    """Upload; returns the address of the repository. The token is the hub's own (HF_TOKEN, ``hf auth login`` ...).

    Raises:
        Refusal: the hub's package is missing, or the hub does not answer or refuses (its words are given).
    """
    send = {"huggingface": _to_huggingface, "modelscope": _to_modelscope}[shipment.hub]
    try:
        return send(shipment)
    except (OSError, ValueError, RuntimeError) as error:
        # Hub clients put addresses and ids into their errors, never the token.
        raise Refusal(
            _("the hub refused or did not answer: {error}", error=str(error).strip().splitlines()[0][:300]),
            where=shipment.repository,
            next_step=_("Log in first: hf auth login")
            if shipment.hub == "huggingface"
            else _("Log in first: modelscope login"),
            code="FT715",
        ) from error


def _client(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise Refusal(
            _("the package {name} is not installed", name=package),
            next_step=f"pip install {package.partition('.')[0]}",
            code="FT712",
        ) from error


def _to_huggingface(shipment: Shipment) -> str:
    api = _client("huggingface_hub").HfApi()
    address = api.create_repo(shipment.repository, private=shipment.private, exist_ok=True)
    api.upload_folder(
        repo_id=shipment.repository, folder_path=shipment.folder, allow_patterns=list(shipment.files),
        commit_message="Upload a model trained with fitune",
    )  # fmt: skip
    return str(address)


def _to_modelscope(shipment: Shipment) -> str:
    api = _client("modelscope.hub.api").HubApi()
    api.create_repo(
        shipment.repository, visibility="private" if shipment.private else "public", exist_ok=True, repo_type="model"
    )
    api.upload_folder(repo_id=shipment.repository, folder_path=shipment.folder, allow_patterns=list(shipment.files))
    return f"https://www.modelscope.cn/models/{shipment.repository}"
