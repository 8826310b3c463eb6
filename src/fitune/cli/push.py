"""``fitune push``: a trained or exported model to a hub."""

from typing import Annotated

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def push(
        run: Annotated[str, typer.Argument(metavar="RUN", help=_("Run directory, model folder or exported folder."))],
        to: Annotated[str, typer.Option("--to", metavar="OWNER/NAME", help=_("Repository."))],
        hub: Annotated[str, typer.Option("--hub", metavar="HUB", help=_("huggingface or modelscope."))] = "huggingface",
        public: Annotated[bool, typer.Option("--public", help=_("Visible to everyone; private otherwise."))] = False,
        dry_run: Annotated[bool, typer.Option("--dry-run", help=_("Only list what would go."))] = False,
    ) -> None:
        from fitune.cli.render import say, table
        from fitune.predicting import pack
        from fitune.predicting import push as upload
        from fitune.values import Refusal

        if hub not in ("huggingface", "modelscope"):
            raise Refusal(_("there is no hub {name}", name=hub), where="--hub", next_step="--hub huggingface")
        shipment = pack(run, to, hub=hub, private=not public)
        table([[name, f"{size:,}"] for name, size in shipment.files.items()], [_("file"), _("bytes")], right=(1,))
        who = _("visible to everyone") if public else _("private")
        say(
            _(
                "To {hub}: {name} ({who}), {size} MB",
                hub=hub,
                name=to,
                who=who,
                size=f"{shipment.bytes_total / 1e6:.1f}",
            )
        )
        if dry_run:
            say(_("Nothing was sent. Without --dry-run it goes."))
            return
        say(_("Sent: {address}", address=upload(shipment)))

    add_verb(app, "push", push, _("Publish the model on a hub; --dry-run lists what would go."))
