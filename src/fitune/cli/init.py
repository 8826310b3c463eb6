"""``fitune init``: write a commented job.toml."""

from typing import Annotated, Any

import typer

from fitune.cli.app import add_verb
from fitune.messages import _
from fitune.values import Job


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""
    from fitune.cli.options import with_job_options

    def init(
        file: Annotated[str, typer.Argument(metavar="FILE", help=_("Training file."))],
        out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help=_("Where to write."))] = "job.toml",
        force: Annotated[bool, typer.Option("--force", help=_("Replace the file if it is there."))] = False,
        given: Any = None,
    ) -> None:
        from pathlib import Path

        from fitune.cli.options import job_of
        from fitune.cli.render import say
        from fitune.runs import write_job_toml
        from fitune.values import Refusal

        job = job_of(file, given)
        for path in (job.train, job.dev, job.test):
            if path is not None:
                refuse_unreadable(job, path)
        if Path(out).exists() and not force:
            raise Refusal(_("the file is already there"), where=out, next_step=_("Add --force to replace it."))
        write_job_toml(job, out)
        say(_("Written: {path}. Change what you like, then: fitune train {path}", path=out))

    fields = [field for field in Job.model_fields if field != "train"]
    add_verb(app, "init", with_job_options(init, fields), _("Write a job.toml with every setting explained."))


def refuse_unreadable(job: Job, path: str) -> None:
    """Raise what reading the file would: a job.toml about a file that is empty or no data helps nobody."""
    from fitune.cli.options import READING
    from fitune.data import read, stream

    settings = {field: getattr(job, field) for field in READING}
    if next(iter(stream(path, **settings)), None) is None:
        read(path, **settings)
