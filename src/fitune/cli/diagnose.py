"""``fitune diagnose``: what a log, a run or a script died of or does wrong, and how to mend it."""

from typing import Annotated

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def diagnose(
        source: Annotated[
            str,
            typer.Argument(
                metavar="LOG|RUN|SCRIPT|-", help=_("A log file, a run's directory, a Python script, or - for a pipe.")
            ),
        ],
        fix: Annotated[str | None, typer.Option(metavar="OUT", help=_("A script: write a mended copy here."))] = None,
        job: Annotated[
            str | None, typer.Option("--for", metavar="JOB", help=_("A job.toml: ask the simulator what would fit."))
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help=_("For programs: one JSON value."))] = False,
    ) -> None:
        show_diagnosis(source, fix, job, as_json)

    add_verb(
        app,
        "diagnose",
        diagnose,
        _("Say what a log, a run or a script died of, and mend it."),
        _(
            "Exit code: 0 no error found, 1 an error found, or a log that neither names it nor ends as it should, "
            "2 it cannot be read."
        ),
    )


def show_diagnosis(source: str, fix: str | None, job: str | None, as_json: bool) -> None:
    """Exit code 1 when an error was found, or nothing was recognised in a log that does not end as it should."""
    from pathlib import Path

    from fitune.cli.render import say, show_findings, show_json
    from fitune.doctor import diagnose, diagnose_script
    from fitune.values import Refusal

    found = diagnose(source, job=Path(job) if job else None)
    if fix is not None:
        if found.mended is None:
            if not as_json:
                show_findings(found.findings)
            raise Refusal(
                _("there is nothing that can be mended by itself"),
                where=source,
                next_step=_("Mend by hand what the findings say."),
            )
        if Path(fix).exists():
            raise Refusal(_("this file is there already"), where=fix, next_step=_("Choose another name."))
        Path(fix).write_text(found.mended, encoding="utf-8")
    if as_json:
        show_json(
            {
                "source": found.source,
                "recognised": found.recognised,
                "ended_well": found.ended_well,
                "findings": [finding.model_dump(mode="json") for finding in found.findings],
            }
        )
    else:
        show_findings(found.findings)
        if not found.findings and found.to_send:
            say(found.advice(), "green" if found.ended_well else "yellow")
            if not found.ended_well:
                say(found.to_send)
        elif not found.findings:
            say(_("Nothing was found."))
        if fix is not None:
            say(_("A mended copy is in {path}", path=fix))
            left = diagnose_script(found.mended or "", fix, folder=Path(source).resolve().parent).findings
            if left:
                places = ", ".join(f"{finding.code} {finding.evidence[0].split(': ')[0]}" for finding in left)
                say(_("Left to you in it: {places}", places=places))
        elif found.mended is not None:
            say(_("A mended copy: fitune diagnose {source} --fix OUT", source=source))
    unknown = not found.findings and bool(found.to_send) and not found.ended_well
    if unknown or any(finding.severity == "error" for finding in found.findings):
        raise SystemExit(1)
