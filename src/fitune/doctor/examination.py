"""Examine a machine, and a machine for a job: one line a topic, each ok, warning or problem, with what to type next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from fitune.doctor.engine import rank
from fitune.doctor.oom import gib
from fitune.doctor.pages import all_rules, rule_of
from fitune.doctor.simulator import ask_simulator
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _
from fitune.values import Finding, Job

Status = Literal["ok", "note", "warning", "problem"]
TOPICS = ("python", "driver", "cards", "torch", "packages", "memory", "disk", "network", "console", "job")
_STATUS: dict[str, Status] = {"error": "problem", "warning": "warning", "note": "note"}


class Line(BaseModel):
    """One line of ``fitune doctor``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str
    status: Status
    text: str
    """What is there, or what is wrong."""
    evidence: tuple[str, ...] = ()
    next_step: str = ""
    """What to do, in words."""
    command: str | None = None
    """What to type."""
    code: str | None = None


class Examination(BaseModel):
    """All lines, and whether fine-tuning can start."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lines: tuple[Line, ...]

    @property
    def exit_code(self) -> int:
        """0: ready, perhaps with warnings; 1: at least one problem."""
        return int(any(line.status == "problem" for line in self.lines))


def _topic_of(code: str) -> str:
    return str(getattr(rule_of(code).module, "TOPIC", "job"))


def _line(finding: Finding) -> Line:
    fix = finding.fixes[0]
    return Line(
        topic=_topic_of(finding.code),
        status=_STATUS[finding.severity],
        text=finding.title,
        evidence=finding.evidence,
        next_step=fix.text,
        command=fix.command,
        code=finding.code,
    )


def machine_findings(machine: Machine) -> tuple[Finding, ...]:
    """What the rules see in a machine."""
    pairs: list[tuple[object, Symptom]] = []
    for rule in all_rules():
        ask = getattr(rule.module, "examine", None)
        pairs += [(rule, seen) for seen in ask(machine)] if ask is not None else []
    return rank(pairs)  # type: ignore[arg-type]


def _version(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _all_is_well(machine: Machine, topic: str) -> str:
    """What stands in a topic's line when nothing is wrong; empty: nothing to say."""
    build, driver = machine.torch, machine.driver
    if topic == "python":
        return _("Python {version} ({environment})", version=_version(machine.python), environment=machine.environment)
    if topic == "driver" and driver.version:
        newest = _version(driver.newest_cuda) if driver.newest_cuda else "?"
        return _("driver {version}, CUDA up to {cuda}", version=driver.version, cuda=newest)
    if topic == "cards" and machine.devices:
        parts = [
            _("{name}: {free} free of {total}", name=d.name, free=gib(d.free_bytes), total=gib(d.memory_bytes))
            for d in machine.devices
        ]
        return "; ".join(parts)
    if topic == "torch" and build.state == "ok":
        return _("torch {version}, CUDA {cuda}", version=build.version or "?", cuda=build.cuda or _("none"))
    if topic == "packages" and machine.packages:
        wanted = ("transformers", "accelerate", "tokenizers")
        return ", ".join(f"{name} {machine.packages[name]}" for name in wanted if name in machine.packages)
    if topic == "memory" and machine.memory_bytes:
        limit = machine.memory_limit_bytes or machine.memory_bytes
        return _("{free} of host memory free of {total}", free=gib(machine.memory_free_bytes), total=gib(limit))
    if topic == "disk" and (disk := machine.disk("work")):
        return _(
            "{path}: {free} free of {total}", path=disk.path, free=gib(disk.free_bytes), total=gib(disk.total_bytes)
        )
    if topic == "network" and machine.endpoints:
        return _("answering: {names}", names=", ".join(e.name for e in machine.endpoints if e.answers))
    if topic == "console":
        return _("the console writes {encoding}", encoding=machine.console_encoding)
    return ""


def examine(machine: Machine, job: Job | None = None, *, job_path: Path | None = None) -> Examination:
    """Every topic of the machine, then the job's own needs where there is a job."""
    findings = [_line(finding) for finding in machine_findings(machine)]
    lines: list[Line] = []
    for topic in TOPICS:
        own = [line for line in findings if line.topic == topic]
        if not any(line.status in {"warning", "problem"} for line in own) and (text := _all_is_well(machine, topic)):
            lines.append(Line(topic=topic, status="ok", text=text))
        lines += own
    lines += [Line(topic="python", status="note", text=_("not asked: {what}", what=what)) for what in machine.not_asked]
    if job is not None:
        lines += _for_job(machine, job, job_path)
    return Examination(lines=tuple(lines))


def _for_job(machine: Machine, job: Job, job_path: Path | None) -> Iterator[Line]:
    folder = job_path.parent if job_path is not None else Path()
    for name in (job.train, job.dev, job.test):
        if name and not (folder / name).exists():
            text = _("{path} is not there", path=name)
            step = _("give the path from the folder of job.toml, or the full path")
            yield Line(topic="job", status="problem", text=text, next_step=step, code="FT193")
        elif name:
            yield Line(topic="job", status="ok", text=_("{path} is there", path=name))
    yield _model_line(machine, job, folder)
    if job_path is not None:
        yield _memory_line(job_path)


def _model_line(machine: Machine, job: Job, folder: Path) -> Line:
    place = folder / job.model
    if job.model == "embedded":
        return Line(topic="job", status="ok", text=_("the embedded model needs no hub"))
    if place.is_dir():
        weights = any(
            (place / name).exists()
            for name in ("model.safetensors", "pytorch_model.bin", "model.safetensors.index.json")
        )
        words = any((place / name).exists() for name in ("vocab.txt", "tokenizer.json", "tokenizer.model"))
        missing = [
            name
            for name, there in (
                ("config.json", (place / "config.json").exists()),
                ("model.safetensors", weights),
                ("vocab.txt", words),
            )
            if not there
        ]
        if not missing:
            return Line(topic="job", status="ok", text=_("the model folder {path} is complete", path=job.model))
        text = _("the model folder {path} lacks {missing}", path=job.model, missing=", ".join(missing))
        step = _("copy the missing files there, then run fitune doctor again")
        return Line(topic="job", status="problem", text=text, next_step=step, code="FT703")
    cache = machine.disk("hf cache")
    if cache is not None and any(Path(cache.path).glob(f"models--*{job.model.replace('/', '--')}")):
        return Line(topic="job", status="ok", text=_("{model} is in the cache", model=job.model))
    if any(endpoint.answers for endpoint in machine.endpoints):
        return Line(topic="job", status="ok", text=_("{model} will be downloaded", model=job.model))
    text = _("{model} is neither a folder here nor in the cache, and no hub answers", model=job.model)
    step = _("copy the model's folder here and give its path, or use --model embedded")
    return Line(topic="job", status="problem", text=text, next_step=step, code="FT702")


def _memory_line(job_path: Path) -> Line:
    """What the simulator says; where it cannot be asked, nothing is promised."""
    plan = ask_simulator(job_path)
    estimate = plan.get("estimate") if plan else None
    peak = estimate.get("predicted_peak_bytes") if isinstance(estimate, dict) else None
    card = plan.get("card") if plan else None
    total = card.get("memory_bytes") if isinstance(card, dict) else None
    if not isinstance(peak, int):
        text = _("whether the job fits was not asked of the simulator")
        return Line(topic="job", status="note", text=text, command=f"fitune plan {job_path}")
    if isinstance(total, int) and peak > total:
        text = _("predicted to need {peak} of {total}", peak=gib(peak), total=gib(total))
        return Line(topic="job", status="problem", text=text, command=f"fitune plan {job_path} --cards", code="FT301")
    return Line(topic="job", status="ok", text=_("predicted peak memory: {peak}", peak=gib(peak)))
