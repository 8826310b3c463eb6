"""``fitune doctor``: is this machine, and is it for this job, ready for fine-tuning?"""

from typing import Annotated, Any

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def doctor(
        job: Annotated[
            str | None, typer.Option("--for", metavar="JOB", help=_("Also check what this job.toml needs."))
        ] = None,
        offline: Annotated[bool, typer.Option("--offline", help=_("Ask neither hub nor mirrors."))] = False,
        as_json: Annotated[bool, typer.Option("--json", help=_("For programs: one JSON value."))] = False,
    ) -> None:
        show_machine(job, offline, as_json)

    add_verb(
        app,
        "doctor",
        doctor,
        _("Say whether this machine is ready for fine-tuning, and what to type next."),
        _("Exit code: 0 ready, also with warnings; 1 there is a problem; 2 the job cannot be read."),
    )


def show_machine(job_file: str | None, offline: bool, as_json: bool) -> None:
    """Exit code 1 when there is a problem."""
    from pathlib import Path

    from fitune.cli.render import say, show_json
    from fitune.doctor import examine
    from fitune.machine import probe

    job, path = None, None
    if job_file is not None:
        path = Path(job_file)
        job = read_job(path)
    machine = probe(network=not offline)
    found = examine(machine, job, job_path=path)
    if as_json:
        show_json({"lines": found.model_dump(mode="json")["lines"], "machine": machine.model_dump(mode="json")})
    else:
        words = {"ok": _("ok"), "note": _("note"), "warning": _("warning"), "problem": _("problem")}
        styles = {"ok": "green", "note": "cyan", "warning": "yellow", "problem": "bold red"}
        for line in found.lines:
            code = f"{line.code} " if line.code else ""
            say(f"[{words[line.status]}] {code}{line.text}", styles[line.status])
            for evidence in line.evidence[:3]:
                say(f"    {evidence}", "dim")
            if line.next_step:
                say(f"    -> {line.next_step}")
            if line.command:
                say(f"       {line.command}")
    raise SystemExit(found.exit_code)


def read_job(path: Any) -> Any:
    """The Job of a job.toml, or of a run directory's."""
    import tomlkit
    from pydantic import ValidationError
    from tomlkit.exceptions import TOMLKitError

    from fitune.values import Job, Refusal

    try:
        plain = tomlkit.parse(path.read_text(encoding="utf-8")).unwrap()
        known = {name: value for name, value in plain.items() if name in Job.model_fields}
        return Job.model_validate(known)
    except (OSError, TOMLKitError, ValidationError) as error:
        raise Refusal(
            _("the job cannot be read: {error}", error=str(error).splitlines()[0]),
            where=str(path),
            next_step=_("Make one: fitune init TRAIN"),
        ) from error
