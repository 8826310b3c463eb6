"""One boundary to the outside world: everything that is asked of it is asked here, side by side, with time limits."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any

import fitune
from fitune.machine.cards import probe_cards
from fitune.machine.network import probe_endpoints
from fitune.machine.secrets import mask
from fitune.machine.system import (
    find_conflicts,
    probe_console,
    probe_disks,
    probe_memory,
    probe_packages,
    probe_place,
    probe_settings,
)
from fitune.machine.torch_child import ask_torch
from fitune.machine.values import Machine


def _offline(settings: dict[str, str]) -> bool:
    return any(
        settings.get(name, "") in {"1", "true", "True", "TRUE", "ON"}
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def _cards() -> dict[str, Any]:
    driver, devices = probe_cards()
    return {"driver": driver, "devices": devices}


def _torch(limit_seconds: float) -> dict[str, Any]:
    torch, transformers_error = ask_torch(limit_seconds)
    return {
        "torch": torch.model_copy(update={"error": mask(torch.error)}),
        "transformers_error": mask(transformers_error),
    }


def probe(
    *, network: bool = True, torch: bool = True, work: str | os.PathLike[str] = ".", torch_limit_seconds: float = 20.0
) -> Machine:
    """Ask this machine everything that fine-tuning depends on.

    A probe that fails or takes too long is named in ``Machine.not_asked``; it never takes the others down.
    ``network=False`` asks neither hub nor mirrors, ``torch=False`` starts no child process.
    """
    settings = probe_settings()
    probes: dict[str, Callable[[], dict[str, Any]]] = {
        "place": probe_place,
        "packages": lambda: {"packages": probe_packages(), "conflicts": find_conflicts()},
        "memory": probe_memory,
        "disks": lambda: {"disks": probe_disks(Path(work))},
        "console": probe_console,
        "cards": _cards,
    }
    if torch:
        probes["torch"] = lambda: _torch(torch_limit_seconds)
    if network and not _offline(settings):
        probes["network"] = lambda: {"endpoints": probe_endpoints()}
    found: dict[str, Any] = {"fitune": fitune.__version__, "settings": settings}
    missing: list[str] = []
    pool = ThreadPoolExecutor(len(probes))
    waiting: dict[str, Future[dict[str, Any]]] = {name: pool.submit(ask) for name, ask in probes.items()}
    for name, future in waiting.items():
        try:
            found.update(future.result(timeout=3 * torch_limit_seconds + 5))
        except FutureTimeout:
            missing.append(f"{name}: no answer")
        except Exception as error:  # noqa: BLE001  a doctor must outlive every organ that fails; the reason is kept
            missing.append(f"{name}: {type(error).__name__}: {mask(str(error))}")
    pool.shutdown(wait=False)
    return Machine(**found, not_asked=tuple(missing))
