"""``fitune stop``: save and stop a run."""

from typing import Annotated

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def stop(
        run: Annotated[str, typer.Argument(metavar="RUN", help=_("Run directory, or its name."))],
        wait_minutes: Annotated[
            float, typer.Option(metavar="M", min=0, help=_("How long to wait until it has saved itself."))
        ] = 10.0,
    ) -> None:
        import os
        import signal
        import socket
        import time

        from fitune.cli.render import say
        from fitune.cli.running import run_named, worker_of
        from fitune.values import Refusal

        opened = run_named(run)
        worker = worker_of(opened)
        if worker is None:
            say(_("Nobody works on this run."))
            return
        if worker["host"] != socket.gethostname():
            raise Refusal(
                _("the run is at work on another machine: {host}", host=worker["host"]),
                where=str(opened.directory),
                next_step=_("Type fitune stop there."),
            )
        os.kill(worker["pid"], signal.SIGTERM)
        say(_("Process {pid} was asked to save and stop.", pid=worker["pid"]))
        end = time.monotonic() + 60 * wait_minutes
        while worker_of(opened) is not None:
            if time.monotonic() > end:
                raise Refusal(_("it has not stopped yet"), where=str(opened.directory), next_step=_("Type it again."))
            time.sleep(0.2)
        say(_("Stopped. The same command, or fitune train with the same settings, goes on."))

    add_verb(app, "stop", stop, _("Let a run save itself and stop; the same command goes on later."))
