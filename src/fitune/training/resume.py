"""Which run a command means: a new one, one that goes on, or one that is finished. Loads no torch."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fitune.messages import _
from fitune.runs import Run, new_run_directory
from fitune.values import Job, Refusal

IDENTITY = "identity.json"
FINISHED = ("finished", "early_stop")


@dataclass(frozen=True)
class Choice:
    """The run that a command means."""

    directory: Path
    kind: Literal["new", "goes_on"]
    set_aside: Path | None = None
    """Where ``fresh`` has put the run that was there."""


class AlreadyFinished(Refusal):
    """The same job on the same data has been trained to its end (FT608). Nothing is wrong: exit code 0."""

    exit_code = 0

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(
            _("this run is finished: same job, same data"),
            where=str(directory),
            next_step=_("Its model is in {path}. To train anew, add --fresh.", path=directory / "model"),
            code="FT608",
        )


def identity(job: Job) -> dict[str, Any]:
    """What makes two commands the same: the job as asked for, and the content of its files."""
    files = {field: getattr(job, field) for field in ("train", "dev", "test") if getattr(job, field)}
    model = Path(job.model)
    if model.is_dir():
        files |= {
            f"model/{p.name}": str(p) for p in sorted(model.glob("*")) if p.suffix in (".json", ".safetensors", ".txt")
        }
    return {"job": job.model_dump(mode="json"), "files": {name: _hash(Path(path)) for name, path in files.items()}}


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What differs, one line each, for a person."""
    lines: list[str] = []
    for field in sorted(before["job"].keys() | now["job"].keys()):
        old, new = before["job"].get(field), now["job"].get(field)
        if old != new and field not in ("train", "dev", "test", "model"):
            lines.append(_("{field}: {old} then, {new} now", field=field, old=old, new=new))
    for name in sorted(before["files"].keys() | now["files"].keys()):
        old, new = before["files"].get(name), now["files"].get(name)
        if old is None or new is None:
            lines.append(_("{name}: only {when}", name=name, when=_("now") if old is None else _("then")))
        elif old != new:
            lines.append(_("{name}: the content has changed", name=name))
    if not before["files"].keys() & {"model/config.json"} and before["job"]["model"] != now["job"]["model"]:
        lines.append(
            _("{field}: {old} then, {new} now", field="model", old=before["job"]["model"], new=now["job"]["model"])
        )
    return lines


def choose_run(
    job: Job,
    out: str | Path | None,
    *,
    fresh: bool = False,
    name: str | Path | None = None,
    root: str | Path = "runs",
) -> Choice:
    """The directory that ``train`` works in.

    With ``out``: that directory; a run in it goes on when job and data are the same. Without: the newest unfinished run
    of the same job and data under ``root`` (named after ``name``, by default the training file), else a new one.
    ``fresh``: a new one; what is in ``out`` is kept beside.

    Raises:
        AlreadyFinished: the same job on the same data has been trained to its end.
        Refusal: the run in ``out`` is of another job or other data (FT604); it says what differs.
    """
    if out is not None:
        return _choose_given(job, Path(out), fresh)
    if not fresh:
        now = identity(job)
        stem = re.sub(r"[^\w.-]+", "_", Path(name or job.train).stem).strip("._") or "run"
        found = [p for p in Path(root).glob(f"{stem}-*") if re.fullmatch(r"\d+", p.name.removeprefix(f"{stem}-"))]
        for directory in sorted(found, key=lambda p: int(p.name.rpartition("-")[2]), reverse=True):
            before = _identity_of(directory)
            if before is not None and not differences(before, now):
                if is_finished(Run(directory)):
                    raise AlreadyFinished(directory)
                return Choice(directory, "goes_on")
    return Choice(new_run_directory(name or job.train, root), "new")


def _choose_given(job: Job, directory: Path, fresh: bool) -> Choice:
    run = Run(directory)
    if not run.job_path.exists() and not run.events_path.exists():
        return Choice(directory, "new")
    if fresh:
        number = 1
        while (aside := directory.with_name(f"{directory.name}.old-{number}")).exists():
            number += 1
        return Choice(directory, "new", aside)
    before = _identity_of(directory)
    lines = differences(before, identity(job)) if before else [_("it does not say what it was trained on")]
    if lines:
        raise Refusal(
            _("there is another run in this directory:") + "\n" + "\n".join(f"  {line}" for line in lines),
            where=str(directory),
            next_step=_("Give another directory with --out, or add --fresh: the old run is kept beside."),
            code="FT604",
        )
    if is_finished(run):
        raise AlreadyFinished(directory)
    return Choice(directory, "goes_on")


def begin(choice: Choice, job: Job) -> None:
    """Make the directory of a new run and write down what it is; move what ``fresh`` sets aside. Under the lock."""
    if choice.kind == "new":
        if choice.set_aside is not None:
            choice.directory.rename(choice.set_aside)
        choice.directory.mkdir(parents=True, exist_ok=True)
        beside = choice.directory / f"{IDENTITY}.new"
        beside.write_text(json.dumps(identity(job), ensure_ascii=False, indent=1), encoding="utf-8")
        beside.replace(choice.directory / IDENTITY)


def is_finished(run: Run) -> bool:
    """Whether the last thing that happened is that training came to its end."""
    last = next((event for event in reversed(run.events()) if event.kind in ("stopped", "resumed", "started")), None)
    return last is not None and last.kind == "stopped" and last.data.get("reason") in FINISHED


def _identity_of(directory: Path) -> dict[str, Any] | None:
    try:
        return json.loads((directory / IDENTITY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _hash(path: Path) -> str:
    """SHA-256 of a file; of the names and contents in a folder; empty where there is none (the reader says so)."""
    digest = hashlib.sha256()
    if path.is_dir():
        for part in sorted(p for p in path.rglob("*") if p.is_file()):
            digest.update(str(part.relative_to(path)).encode() + b"\0" + _hash(part).encode())
    elif path.is_file():
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    else:
        return ""
    return digest.hexdigest()
