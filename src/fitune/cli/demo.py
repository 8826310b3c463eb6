"""``fitune demo``: a real encoder on real text, without a model hub, in a few minutes on a CPU."""

from typing import Annotated

import typer

from fitune.cli.app import add_verb
from fitune.messages import _

# What ends in a few CPU-minutes: rows of (training, development), and passes. That the rest is left alone is said.
ROWS = {"classification": (3000, 600), "ner": (1500, 400)}
EPOCHS = {"classification": 1.0, "ner": 3.0}


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def demo(
        task: Annotated[
            str, typer.Option(metavar="classification|ner", help=_("Product reviews, or names in newspaper text."))
        ] = "classification",
        folder: Annotated[
            str, typer.Option(metavar="DIR", help=_("Where the data files are written, for you to look at."))
        ] = "demo",
        model: Annotated[
            str, typer.Option(metavar="NAME", help=_("Encoder; the default needs no model hub."))
        ] = "embedded",
        rows: Annotated[
            int | None, typer.Option(metavar="N", min=40, help=_("Training rows; more take longer and score higher."))
        ] = None,
        epochs: Annotated[float | None, typer.Option(metavar="N", help=_("Passes over the training rows."))] = None,
        out: Annotated[
            str | None, typer.Option(metavar="DIR", help=_("Run directory; runs/FILE-n by default."))
        ] = None,
    ) -> None:
        run_demo(task, folder, model, rows, epochs, out)

    add_verb(app, "demo", demo, _("Train on real text that comes along, in a few minutes."))


def run_demo(task: str, folder: str, model: str, rows: int | None, epochs: float | None, out: str | None) -> None:
    """Write the files, say what they are, and do what ``fitune train`` does with them."""
    from fitune.cli.demo_data import LONGEST_CHARACTERS, write_demo_files
    from fitune.cli.render import say
    from fitune.cli.train import run_job
    from fitune.runs import job_from_fields
    from fitune.values import Refusal

    if task not in ROWS:
        raise Refusal(_("{found!r} is no task", found=task), where="--task", next_step="--task classification | ner")
    train_rows, dev_rows = ROWS[task]
    files = write_demo_files(task, folder, rows or train_rows, dev_rows)
    say(files.text)
    say(
        _(
            "So that this ends in minutes: of {total} different texts, {train} train and {dev} score the model, "
            "all of at most {longest} characters (--rows takes more).",
            total=files.rows_total,
            longest=LONGEST_CHARACTERS,
            train=files.rows_train,
            dev=files.rows_dev,
        )
    )
    epochs = epochs or EPOCHS[task]
    command = f"fitune train {files.train} --dev {files.dev} --model {model} --epochs {epochs:g}"
    say(_("This is the same as: {command}", command=command))
    fields = {"train": str(files.train), "dev": str(files.dev), "model": model, "epochs": epochs, "task": task}
    run_job(job_from_fields(fields, where="fitune demo"), str(files.train), out, None)
