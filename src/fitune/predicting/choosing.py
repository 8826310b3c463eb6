"""Which engine runs: the one asked for, or the fastest exact one that was measured on this machine.

``fitune export`` writes beside the exported files what it measured (``export.json``). A Predictor of the run finds the
exports in the run's directory; one that was made from other weights, or measured on another machine, is no candidate.
"""

from __future__ import annotations

import json
import os
import platform
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fitune.messages import _
from fitune.predicting.engines import ENGINES, FORMATS
from fitune.tasks import read_settings
from fitune.values import Refusal

__all__ = ["EXPORT_FILE", "choose_engine", "machine_name"]

EXPORT_FILE = "export.json"

WORTH_CHANGING = 1.05
"""An exported engine is taken by itself when it was measured at least so many times as fast as torch."""

_PACKAGES = {"onnx": "onnxruntime", "ctranslate2": "ctranslate2"}


def choose_engine(folder: Path, wanted: str | None, *, cuda: bool = False) -> tuple[str, Path]:
    """The engine asked for, or the fastest exact one that is there, and the folder that holds its file.

    Args:
        folder: a model's folder or an exported one.
        cuda: torch has a CUDA device; the other engines run on the CPU.

    Raises:
        Refusal: an unknown engine, or one whose file is nowhere.
    """
    if wanted is not None and wanted not in ENGINES:
        raise Refusal(
            _("there is no engine {name}", name=wanted),
            where="--engine",
            next_step=_("There are: {names}", names=", ".join(ENGINES)),
        )
    here = {name: folder for name, file in ENGINES.items() if (folder / file).is_file()}
    exported = _exports(folder) if "torch" in here else {}
    if wanted is None:
        return _fastest(here, {} if cuda else exported) or ("torch", folder)  # loading says which file is missing
    if wanted in here or wanted == "torch":
        return wanted, folder
    if wanted in exported:
        return wanted, exported[wanted][0]
    raise Refusal(
        _("the folder holds no {file}", file=ENGINES[wanted]),
        where=str(folder),
        next_step=_(
            "Make it: fitune export RUN --to {format}{int8}",
            format=wanted.removesuffix("-int8"),
            int8=" --int8" if wanted.endswith("-int8") else "",
        ),
        code="FT711",
    )


def _fastest(here: dict[str, Path], exported: dict[str, tuple[Path, dict[str, Any]]]) -> tuple[str, Path] | None:
    best, rate = next(iter(here.items()), None), WORTH_CHANGING
    for name, (folder, facts) in exported.items():
        if name.endswith("-int8") or facts.get("machine") != machine_name() or find_spec(_PACKAGES[name]) is None:
            continue
        speed = next((c["times_as_fast"] for c in facts["comparisons"] if c["engine"] == name), 0.0)
        if speed > rate:
            best, rate = (name, folder), speed
    return best


def _exports(folder: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Engine -> its folder and export.json, of the exports beside ``folder`` that were made from these weights."""
    weights = read_settings(folder).files.get(ENGINES["torch"])
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for format_name in FORMATS:
        beside = folder.parent / format_name
        try:
            facts = json.loads((beside / EXPORT_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # not exported, or by an older fitune
        if weights is None or facts.get("source") != weights:
            continue
        names = (name for name in ENGINES if name.removesuffix("-int8") == format_name)
        found |= {name: (beside, facts) for name in names if (beside / ENGINES[name]).is_file()}
    return found


def machine_name() -> str:
    """The processor, as far as the system tells, and its cores."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass  # not Linux
    return f"{name}, {os.cpu_count()}"
