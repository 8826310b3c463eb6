"""Publishing a trained or exported model on a hub: first what would go, then, when told so, the upload."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any, Literal

from fitune.messages import _
from fitune.predicting.card import write_card
from fitune.predicting.predictor import model_folder
from fitune.values import Refusal
from fitune.values.base import Value

__all__ = ["Shipment", "pack", "push"]

_NO_ANSWER = {"TransportError", "ConnectionError", "Timeout", "TimeoutError", "gaierror", "OfflineModeIsEnabled"}

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
    except Exception as error:
        if is_unanswered(error):
            raise _unanswered(shipment, error) from error
        if not isinstance(error, (OSError, ValueError, RuntimeError)):
            raise
        # Hub clients put addresses and ids into their errors, never the token.
        raise Refusal(
            _("the hub refused: {error}", error=_first_line(error)),
            where=shipment.repository,
            next_step=_("Log in first: hf auth login")
            if shipment.hub == "huggingface"
            else _("Log in first: modelscope login"),
            code="FT715",
        ) from error


def is_unanswered(error: BaseException | None) -> bool:
    """Whether no answer came, by the names of the error's classes and of what it came from: the hubs' packages use
    one of several HTTP libraries (httpx, its successors, requests), whose errors share no base."""
    while error is not None:
        if any(kind.__name__ in _NO_ANSWER for kind in type(error).__mro__):
            return True
        error = error.__cause__ or error.__context__
    return False


def _unanswered(shipment: Shipment, error: Exception) -> Refusal:
    steps = [
        _("Nothing is lost; when there is a network, type the command again. Until then --dry-run lists the files.")
    ]
    endpoint = os.environ.get("HF_ENDPOINT", "")
    if shipment.hub == "huggingface" and endpoint:
        steps.append(_("HF_ENDPOINT is {address}: mirrors take no uploads; unset it.", address=endpoint))
    steps.append(_("From another machine: copy {folder} there and push that folder.", folder=shipment.folder))
    if shipment.hub == "huggingface":
        steps.append(_("Where only ModelScope can be reached: {option}", option="--hub modelscope"))
    return Refusal(
        _("the hub cannot be reached: {error}", error=_first_line(error)),
        where=shipment.repository,
        next_step="\n".join(steps),
        code="FT715",
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


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
