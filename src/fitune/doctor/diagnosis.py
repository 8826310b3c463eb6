"""Diagnose a log, a run or a script: findings, the likeliest first, or plainly none."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

from fitune.doctor.binary import refuse_binary
from fitune.doctor.course import history_of_log
from fitune.doctor.engine import rank
from fitune.doctor.history import History, read_run
from fitune.doctor.log import Log
from fitune.doctor.pages import Rule, all_rules
from fitune.doctor.raised import ended_quietly, finished_well, went_on
from fitune.doctor.script import Script
from fitune.doctor.simulator import for_job
from fitune.doctor.symptom import Edit, Symptom
from fitune.machine import mask
from fitune.messages import _, system_reason
from fitune.values import Finding, Refusal


@dataclass(frozen=True)
class Diagnosis:
    """What was found in one log, run or script."""

    source: str
    findings: tuple[Finding, ...]
    """The likeliest cause first."""
    to_send: str = ""
    """The end of a log for a bug report: secrets and user names masked."""
    mended: str | None = None
    """A script's mended text; None: not a script, or nothing to mend."""
    ended_well: bool = False
    """A log: the training it shows seems to have ended as it should."""

    @property
    def recognised(self) -> bool:
        """Whether anything above a note was found."""
        return any(finding.severity != "note" for finding in self.findings)

    def advice(self) -> str:
        """One line on what to do when nothing was recognised; empty otherwise."""
        if self.recognised:
            return ""
        if self.ended_well:
            return _("no error found: the training seems to have ended as it should")
        return _(
            "nothing was recognised; send the last lines below (masked) with the command you typed, as a bug report"
        )


def diagnose_log(text: str | bytes, name: str = "log", *, job: Path | None = None) -> Diagnosis:
    """Findings of a log. ``job``: ask the simulator about this job for memory advice."""
    log = Log(text, name)
    history = history_of_log(log)
    with for_job(job):
        well = finished_well(log)
        pairs = [(rule, _got_over(rule, seen, log, well)) for rule in all_rules() for seen in _of(rule, "read", log)]
        pairs += [(rule, seen) for rule in all_rules() for seen in _of(rule, "watch", history)]
        findings = rank(_without_fallbacks(_one_each(pairs)), log)
    tail = "\n".join(line.text for line in log.lines[-60:]).strip()
    return Diagnosis(name, findings, mask(tail), ended_well=well or ended_quietly(log))


def diagnose_run(directory: Path) -> Diagnosis:
    """Findings of a run directory: its course, and the log beside it when it failed."""
    history: History = read_run(directory)
    pairs = [(rule, seen) for rule in all_rules() for seen in _of(rule, "watch", history)]
    for path in sorted(directory.glob("*.log")):
        log = Log(path.read_bytes(), str(path))
        job = directory / "job.toml"
        with for_job(job if job.exists() else None):
            pairs += [(rule, seen) for rule in all_rules() for seen in _of(rule, "read", log)]
    return Diagnosis(str(directory), rank(_one_each(pairs)))


def diagnose_script(text: str, name: str = "script.py", *, folder: Path | None = None) -> Diagnosis:
    """Findings of a fine-tuning script, which is read and never run.

    ``folder`` is where the script would be run: data files it names are looked into when they lie there.
    """
    script = Script.parse(text, name, folder)
    pairs = [(rule, seen) for rule in all_rules() for seen in _of(rule, "check", script)]
    edits = [edit for _rule, seen in pairs for edit in seen.edits]
    mended = script.mend(edits) if edits else None
    return Diagnosis(name, rank(pairs), mended=mended)


def diagnose(path: str, *, job: Path | None = None) -> Diagnosis:
    """A run directory, a Python script, a log file, or ``-`` for a log on standard input."""
    if path == "-":
        piped = sys.stdin.buffer.read()
        refuse_binary(piped, "stdin")
        return diagnose_log(piped, "stdin", job=job)
    there = Path(path)
    if there.is_dir():
        if not (there / "events.jsonl").exists():
            raise Refusal(
                _("this folder holds no events.jsonl, so it is not a run"),
                where=path,
                next_step=_("give a run directory, a log file, or a script"),
            )
        return diagnose_run(there)
    try:
        raw = there.read_bytes()
    except OSError as error:
        raise Refusal(
            _("cannot be read: {reason}", reason=system_reason(error)),
            where=path,
            next_step=_("give a log file, a script, a run directory, or - for standard input"),
        ) from error
    refuse_binary(raw, path)
    if there.suffix == ".py":
        return diagnose_script(Log(raw).text, path, folder=there.resolve().parent)
    return diagnose_log(raw, path, job=job)


def _of(rule: Rule, function: str, thing: object) -> list[Symptom]:
    ask = getattr(rule.module, function, None)
    return list(ask(thing)) if ask is not None else []


def _one_each(pairs: list[tuple[Rule, Symptom]]) -> list[tuple[Rule, Symptom]]:
    """Of several symptoms of one rule, the surest."""
    best: dict[str, tuple[Rule, Symptom]] = {}
    for rule, seen in pairs:
        if rule.code not in best or seen.confidence > best[rule.code][1].confidence:
            best[rule.code] = (rule, seen)
    return list(best.values())


def _got_over(rule: Rule, seen: Symptom, log: Log, well: bool) -> Symptom:
    """A note instead of an error where training went on after the last sign of it (a retry, a smaller batch).

    ``well``: the training ended as it should, so whatever it was, training got over it.
    """
    if (seen.severity or rule.severity) != "error" or getattr(rule.module, "PERSISTS", False):
        return seen
    return replace(seen, severity="note") if well or went_on(log, max((seen.line, *seen.lines))) else seen


def _without_fallbacks(pairs: list[tuple[Rule, Symptom]]) -> list[tuple[Rule, Symptom]]:
    """Without the rules that speak only where no other one knows the error."""
    known = [pair for pair in pairs if not getattr(pair[0].module, "FALLBACK", False)]
    return known if any((seen.severity or rule.severity) == "error" for rule, seen in known) else pairs


__all__ = ["Diagnosis", "Edit", "diagnose", "diagnose_log", "diagnose_run", "diagnose_script"]
