"""The format of a trained model, written and read here.

A folder that plain transformers loads (``AutoModelForTokenClassification.from_pretrained``: config with label names,
weights, tokenizer), and beside it ``fitune.json`` (task, thresholds, window, normalisation, SHA-256 of every file)
and, for a CRF head, ``crf.safetensors`` with its transitions.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from fitune.checkpoint import disk_error, not_saved, usual_modes
from fitune.data import Encoder, quote_map
from fitune.hf import ATTENTION, load_model, load_tokenizer, make_encoder, no_bars
from fitune.messages import _
from fitune.tasks.classification import ClassificationTask
from fitune.tasks.crf import LinearChainCrf
from fitune.tasks.evaluation import Task
from fitune.tasks.learner import Learner
from fitune.tasks.ner import NerTask
from fitune.values import Refusal
from fitune.values.base import Value

SETTINGS_FILE = "fitune.json"
CRF_FILE = "crf.safetensors"
FORMAT_VERSION = 1
_NEW, _OLD = ".new", ".old"


class ModelSettings(Value):
    """``fitune.json``: what plain transformers has no place for."""

    format_version: int = FORMAT_VERSION
    task: Literal["ner", "classification"]
    labels: tuple[str, ...]
    """Entity types, or classes."""
    head: Literal["softmax", "crf"] = "softmax"
    multi_label: bool = False
    pairs: bool = False
    thresholds: dict[str, float] = Field(default_factory=dict)
    max_length: int
    """Window in tokens."""
    lowercase: bool = False
    normalize_quotes: bool = False
    base_model: str = ""
    """Job.model of the run."""
    metrics: dict[str, float] = Field(default_factory=dict)
    """On the development set, of these weights."""
    versions: dict[str, str] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)
    """File name -> SHA-256."""

    def make_task(self) -> Task:
        if self.task == "ner":
            return NerTask(self.labels, self.head, self.max_length)
        thresholds = tuple(self.thresholds[label] for label in self.labels) if self.thresholds else ()
        return ClassificationTask(self.labels, self.multi_label, self.max_length, thresholds, self.pairs)


@dataclass(frozen=True)
class SavedModel:
    """A trained model, read back."""

    settings: ModelSettings
    task: Task
    learner: Learner
    tokenizer: Any

    def encoder(self) -> Encoder:
        """The tokenizer as ``data.split`` sees it, with the normalisation of training."""
        wanted = self.settings.normalize_quotes
        return make_encoder(self.tokenizer, translation=quote_map(self.tokenizer.get_vocab()) if wanted else None)


def settings_of(task: Task, **fields: Any) -> ModelSettings:
    """The settings that a task itself knows, and others by name."""
    thresholds: dict[str, float] = {}
    if isinstance(task, ClassificationTask) and task.thresholds:
        thresholds = dict(zip(task.labels, task.thresholds, strict=True))
    return ModelSettings(
        task=task.name,
        labels=task.labels,
        head=task.head,
        multi_label=task.multi_label,
        pairs=isinstance(task, ClassificationTask) and task.pairs,
        thresholds=thresholds,
        **fields,
    )


def save(folder: str | Path, learner: Learner, tokenizer: Any, settings: ModelSettings) -> None:
    """Write the model whole or not at all: beside the folder, then renamed over it (the old one goes last).

    Raises:
        NotSaved: the disk is full or not writable; the model that was there is as it was.
    """
    folder = Path(folder)
    aside = folder.with_name(f".{folder.name}.{os.getpid()}{_NEW}")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        _write(aside, learner, tokenizer, settings)
    except BaseException as error:
        shutil.rmtree(aside, ignore_errors=True)
        # safetensors and tokenizers have error classes of their own for what the disk said.
        if (refused := disk_error(error)) is not None:
            raise not_saved(_("the model"), folder.parent, refused) from error
        raise
    old = folder.with_name(f".{folder.name}.{os.getpid()}{_OLD}")
    if folder.exists():
        folder.rename(old)
    aside.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _write(aside: Path, learner: Learner, tokenizer: Any, settings: ModelSettings) -> None:
    aside.mkdir(parents=True)
    with no_bars():
        model: Any = learner.model
        model.save_pretrained(aside)
    tokenizer.save_pretrained(aside)
    if learner.crf is not None:
        save_file(
            {name: t.detach().cpu().contiguous() for name, t in learner.crf.state_dict().items()}, aside / CRF_FILE
        )
    files = {path.name: sha256_of(path) for path in sorted(aside.iterdir()) if path.is_file()}
    settings = settings.model_copy(update={"files": files})
    (aside / SETTINGS_FILE).write_text(settings.model_dump_json(indent=1), encoding="utf-8")
    usual_modes(aside)
    for path in aside.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def sweep_model(folder: str | Path) -> None:
    """Remove what a killed ``save`` left beside ``folder``; a model that it had just moved away comes back."""
    folder = Path(folder)
    for old in folder.parent.glob(f".{folder.name}.*{_OLD}"):
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(folder)
    for new in folder.parent.glob(f".{folder.name}.*{_NEW}"):
        shutil.rmtree(new, ignore_errors=True)


def rewrite_settings(folder: str | Path, settings: ModelSettings, *, files: dict[str, str] | None = None) -> None:
    """Replace ``fitune.json`` alone (thresholds that were tuned later); ``files``: new hashes, else they stay."""
    folder = Path(folder)
    kept = settings.model_copy(update={"files": read_settings(folder).files if files is None else files})
    beside = folder / f".{SETTINGS_FILE}.new"
    beside.write_text(kept.model_dump_json(indent=1), encoding="utf-8")
    beside.replace(folder / SETTINGS_FILE)


def read_settings(folder: str | Path) -> ModelSettings:
    """``fitune.json`` of a trained model.

    Raises:
        Refusal: no trained model there, or its settings cannot be read.
    """
    path = Path(folder) / SETTINGS_FILE
    if not path.is_file():
        raise Refusal(
            _("there is no {file} in it", file=SETTINGS_FILE) if path.parent.is_dir() else _("there is no such folder"),
            where=str(folder),
            next_step=_("Name the folder of a model that fitune trained, such as runs/train-1/model."),
            code="FT708",
        )
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(plain, dict) and plain.get("format_version", 0) > FORMAT_VERSION:
            raise _damaged(path, _("it was written by a newer fitune"), _("Update: pip install -U fitune"))
        return ModelSettings.model_validate(plain)
    except (ValueError, ValidationError) as error:
        raise _damaged(path, _("cannot be read: {error}", error=str(error).splitlines()[0])) from None


def verify_files(folder: Path, settings: ModelSettings, *, check: bool = True) -> None:
    """Raise a Refusal that names the first file that is missing or (``check``) not what was saved."""
    for name, expected in settings.files.items():
        path = folder / name
        if not path.is_file():
            raise _damaged(path, _("this file of the model is missing"))
        if check and sha256_of(path) != expected:
            raise _damaged(path, _("this file of the model is damaged: its SHA-256 is not the one it was saved with"))


def load(
    folder: str | Path, *, device: torch.device | str = "cpu", attention: str = "sdpa", check: bool = True
) -> SavedModel:
    """Read a trained model back.

    Args:
        attention: as in a Fit.
        check: compare every file with its SHA-256.

    Raises:
        Refusal: the folder holds no trained model, or a file is missing or damaged (it is named).
    """
    folder = Path(folder)
    settings = read_settings(folder)
    verify_files(folder, settings, check=check)
    task = settings.make_task()
    crf = None
    try:
        loaded = load_model(
            folder, task.classes, task=task.name, multi_label=task.multi_label, attention=ATTENTION[attention]
        )
        tokenizer = load_tokenizer(folder, lowercase=settings.lowercase)
        if settings.head == "crf":
            crf = LinearChainCrf(task.classes)
            crf.load_state_dict(load_file(folder / CRF_FILE))
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise _damaged(folder, _("the model cannot be read: {error}", error=str(error).splitlines()[0])) from error
    if loaded.new_weights:
        raise _damaged(folder, _("these weights are missing: {names}", names=", ".join(loaded.new_weights[:4])))
    learner = Learner(loaded.model, crf=crf, multi_label=settings.multi_label).to(device).eval()
    return SavedModel(settings, task, learner, tokenizer)


def _damaged(path: Path, found: str, next_step: str = "") -> Refusal:
    step = next_step or _("Copy the folder again from where it was trained, or train again.")
    return Refusal(found, where=str(path), next_step=step, code="FT709")


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
