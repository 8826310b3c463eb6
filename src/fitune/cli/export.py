"""``fitune export``: a folder that runs without torch, compared with the trained model row by row."""

from typing import Annotated

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def export(
        run: Annotated[str, typer.Argument(metavar="RUN", help=_("Run directory, or a model's folder."))],
        to: Annotated[str, typer.Option("--to", metavar="onnx", help=_("Format."))] = "onnx",
        out: Annotated[
            str | None, typer.Option("--out", "-o", metavar="FOLDER", help=_("Where to; by default RUN/onnx."))
        ] = None,
        int8: Annotated[bool, typer.Option("--int8", help=_("Also with int8 weights: smaller and faster."))] = False,
        max_drop: Annotated[
            float, typer.Option("--max-drop", min=0.0, help=_("Points that int8 may lose on the development rows."))
        ] = 0.5,
        dev: Annotated[
            str | None,
            typer.Option("--dev", metavar="FILE", help=_("Labelled rows to compare on; by default the run's own.")),
        ] = None,
    ) -> None:
        from fitune.cli.render import say, table
        from fitune.predicting import export as write_export
        from fitune.values import Refusal

        if to != "onnx":
            raise Refusal(_("there is no format {name}", name=to), where="--to", next_step="--to onnx")
        folder, comparisons = write_export(run, out, int8=int8, max_drop=max_drop, dev=dev)
        head = [_("engine"), _("rows"), _("other predictions"), _("logits differ by"), _("score"), _("trained model")]
        rows = [
            [
                one.engine,
                str(one.rows),
                str(one.rows_with_other_predictions),
                f"{one.largest_logit_difference:.2g}",
                f"{one.metric} {one.exported_score:.4f}",
                f"{one.torch_score:.4f}",
            ]
            for one in comparisons
        ]
        table(rows, head, right=(1, 2, 3))
        say(_("Exported: {folder}", folder=folder))
        say(_("Without torch: python {example} TEXT", example=folder / "example.py"))

    add_verb(app, "export", export, _("Write the model as ONNX and prove it equal on the development rows."))
