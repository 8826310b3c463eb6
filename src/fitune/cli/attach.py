"""``fitune attach``: the live view of a run that was started elsewhere."""

from typing import Annotated

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def attach(run: Annotated[str, typer.Argument(metavar="RUN", help=_("Run directory, or its name."))]) -> None:
        from fitune.cli.progress import show_events
        from fitune.cli.render import say
        from fitune.cli.running import run_named, worker_of

        opened = run_named(run)
        worker = worker_of(opened)
        if worker is not None:
            say(_("Process {pid} works on it; Ctrl-C leaves it alone.", pid=worker["pid"]))
        events = opened.follow(until=lambda: worker_of(opened) is None, even_after_stop=worker is not None)
        show_events(events, opened.job.metric)

    add_verb(app, "attach", attach, _("Watch a run, from any terminal."))
