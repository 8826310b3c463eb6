"""A run is a directory, and nothing else: this file knows its layout."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import ValidationError

from fitune.messages import _
from fitune.runs.evaluation import Evaluation
from fitune.runs.jobfile import read_job_toml, write_job_toml
from fitune.runs.journal import Journal
from fitune.values import Event, Job, Plan, Refusal


class Run:
    """One run's directory::

    job.toml         what to learn, with what fitune chose filled in
    plan.json        the Fit and its estimate, where there is one
    events.jsonl     one Event a line, appended as things happen
    evaluation.json  scores, errors, findings: what the report shows
    checkpoints/     to go on from
    model/           the final weights, loadable with plain transformers
    report.html      one page, opens offline
    log              what the libraries said, and tracebacks

    Training puts its identity, split, predictions and lock beside: docs/en/reference/run-directory.md lists all.
    """

    def __init__(self, directory: str | Path) -> None:
        """Only names the directory; use ``create`` or ``open``."""
        self.directory = Path(directory)
        self._journal = Journal(self.events_path)

    @classmethod
    def create(cls, directory: str | Path, job: Job, plan: Plan | None = None) -> Run:
        """Make the directory with its job.toml (and plan.json).

        Raises:
            Refusal: a run is already there.
        """
        run = cls(directory)
        if run.job_path.exists() or run.events_path.exists():
            raise Refusal(
                _("there is already a run in this directory"),
                where=str(directory),
                next_step=_("Give another directory with --out."),
            )
        run.directory.mkdir(parents=True, exist_ok=True)
        run.write_job(job)
        if plan is not None:
            run.write_plan(plan)
        return run

    @classmethod
    def open(cls, directory: str | Path) -> Run:
        """An existing run.

        Raises:
            Refusal: no such directory, or it holds no run.
        """
        run = cls(directory)
        if not run.job_path.is_file():
            found = _("there is no job.toml in it") if run.directory.is_dir() else _("there is no such directory")
            raise Refusal(found, where=str(directory), next_step=_("Name a run's directory, such as runs/train-1."))
        return run

    @property
    def name(self) -> str:
        return self.directory.resolve().name

    @property
    def job_path(self) -> Path:
        return self.directory / "job.toml"

    @property
    def plan_path(self) -> Path:
        return self.directory / "plan.json"

    @property
    def events_path(self) -> Path:
        return self.directory / "events.jsonl"

    @property
    def evaluation_path(self) -> Path:
        return self.directory / "evaluation.json"

    @property
    def checkpoints_path(self) -> Path:
        return self.directory / "checkpoints"

    @property
    def model_path(self) -> Path:
        return self.directory / "model"

    @property
    def report_path(self) -> Path:
        return self.directory / "report.html"

    @property
    def log_path(self) -> Path:
        return self.directory / "log"

    @property
    def job(self) -> Job:
        return read_job_toml(self.job_path)

    def write_job(self, job: Job) -> None:
        """Replace job.toml: written once at the start, and again when fitune has chosen the open fields."""
        beside = self.job_path.with_name("job.toml.new")
        write_job_toml(job, beside)
        beside.replace(self.job_path)

    @property
    def plan(self) -> Plan | None:
        """None: the run was started without a plan."""
        if not self.plan_path.is_file():
            return None
        return Plan.model_validate_json(self.plan_path.read_bytes())

    def write_plan(self, plan: Plan) -> None:
        _replace(self.plan_path, plan.model_dump_json(indent=1))

    @property
    def evaluation(self) -> Evaluation | None:
        """None: not (yet) evaluated."""
        if not self.evaluation_path.is_file():
            return None
        return Evaluation.model_validate_json(self.evaluation_path.read_bytes())

    def write_evaluation(self, evaluation: Evaluation) -> None:
        _replace(self.evaluation_path, evaluation.model_dump_json(indent=1))

    def append(self, event: Event) -> None:
        """Add one line to events.jsonl; on a full disk it is kept, and written as soon as there is room."""
        self._journal.append(event)

    def close(self) -> None:
        """Close events.jsonl; a later ``append`` opens it again."""
        self._journal.close()

    def events(self) -> list[Event]:
        """All events so far; a last line that was torn by a crash is left out.

        With those that were appended here and that a full disk has not taken yet.

        Raises:
            Refusal: a line before the last is not an Event.
        """
        return [*(event for event, _end in self._read_from(0, 0)), *self._journal.unwritten]

    def follow(
        self,
        *,
        poll_seconds: float = 0.5,
        until: Callable[[], bool] = lambda: False,
        even_after_stop: bool = False,
    ) -> Iterator[Event]:
        """All events so far, then each new one as it is written.

        Ends when the last event is "stopped" (unless ``even_after_stop``: it may be resumed), or after a last look
        when ``until()`` is true.
        """
        position = line = 0
        last: Event | None = None
        while True:
            ending = until()
            for event, end in self._read_from(position, line):
                line += 1
                last, position = event, end
                yield event
            if ending or (last is not None and last.kind == "stopped" and not even_after_stop):
                return
            time.sleep(poll_seconds)

    def _read_from(self, position: int, line: int) -> Iterator[tuple[Event, int]]:
        """Whole lines from a byte position on, each with the position behind it."""
        if not self.events_path.exists():
            return
        with self.events_path.open("rb") as file:
            file.seek(position)
            for raw in file:
                if not raw.endswith(b"\n"):
                    return
                line += 1
                position += len(raw)
                try:
                    event = Event.model_validate_json(raw)
                except ValidationError:
                    raise Refusal(
                        _("this line is no event: {line}", line=raw[:80].decode(errors="replace")),
                        where=f"{self.events_path}:{line}",
                        next_step=_("Remove the line if it was written by hand."),
                    ) from None
                yield event, position


def new_run_directory(file: str | Path, root: str | Path = "runs") -> Path:
    """Make and return ``root/<stem of file>-<n>`` with the next free n: two starts at once never share one."""
    stem = re.sub(r"[^\w.-]+", "_", Path(file).stem).strip("._") or "run"
    Path(root).mkdir(parents=True, exist_ok=True)
    taken = [
        int(match[1])
        for entry in Path(root).iterdir()
        if (match := re.fullmatch(rf"{re.escape(stem)}-(\d+)", entry.name))
    ]
    number = max(taken, default=0) + 1
    while True:
        directory = Path(root) / f"{stem}-{number}"
        try:
            directory.mkdir()
        except FileExistsError:
            number += 1
        else:
            return directory


def _replace(path: Path, text: str) -> None:
    """Whole or absent."""
    beside = path.with_name(path.name + ".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
