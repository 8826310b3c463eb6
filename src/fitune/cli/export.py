"""``fitune export``: a folder that runs without torch, compared with the trained model row by row."""

from typing import Annotated

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def export(
        run: Annotated[str, typer.Argument(metavar="RUN", help=_("Run directory, or a model's folder."))],
        to: Annotated[str, typer.Option("--to", metavar="onnx|ctranslate2", help=_("Format."))] = "onnx",
        out: Annotated[
            str | None,
            typer.Option("--out", "-o", metavar="FOLDER", help=_("Where to; by default RUN/onnx or RUN/ctranslate2.")),
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

        folder, comparisons = write_export(run, out, to=to, int8=int8, max_drop=max_drop, dev=dev)
        head = [
            _("engine"),
            _("rows"),
            _("other predictions"),
            _("logits differ by"),
            _("score"),
            _("trained model"),
            _("x torch"),
        ]
        rows = [
            [
                one.engine,
                str(one.rows),
                str(one.rows_with_other_predictions),
                f"{one.largest_logit_difference:.2g}",
                f"{one.metric} {one.exported_score:.4f}",
                f"{one.torch_score:.4f}",
                f"{one.times_as_fast:.2f}",
            ]
            for one in comparisons
        ]
        table(rows, head, right=(1, 2, 3, 6))
        say(_("Exported: {folder}", folder=folder))
        if to == "onnx":
            say(_("Without torch: python {example} TEXT", example=folder / "example.py"))

    add_verb(app, "export", export, _("Write the model for another engine and prove it equal on the development rows."))
