"""``fitune predict``: a text, or a whole file, through a trained model."""

import re
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from fitune.cli.app import add_verb
from fitune.messages import _

# What a typed word looks like when it was meant as a file.
_FILE_NAME = re.compile(r"[^\s]{1,255}\.(jsonl?|ndjson|csv|tsv|txt|xlsx?|parquet|bio|bmes|conll)", re.IGNORECASE)


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""
    from fitune.cli.options import with_job_options

    def predict(
        run: Annotated[str, typer.Argument(metavar="RUN", help=_("Run directory, or a model's folder."))],
        texts: Annotated[
            list[str], typer.Argument(metavar="TEXT|FILE", help=_("Texts, or one file in any format; - reads lines."))
        ],
        out: Annotated[
            str | None,
            typer.Option("--out", "-o", metavar="FILE", help=_("File for the result, in the format that came in.")),
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help=_("One JSON object a line."))] = False,
        engine: Annotated[
            str | None,
            typer.Option(
                "--engine",
                metavar="ENGINE",
                help=_("torch, onnx, ctranslate2, or the last two with -int8; by default the fastest exact one here."),
            ),
        ] = None,
        given: Any = None,
    ) -> None:
        predict_texts(run, texts, out, as_json, given, engine)

    fields = ("format", "text_column", "text_pair_column", "label_column")
    add_verb(app, "predict", with_job_options(predict, fields), _("Use a trained model on a text or a file."))


def predict_texts(
    run: str, texts: list[str], out: str | None, as_json: bool, reading: dict[str, Any], engine: str | None = None
) -> None:
    """On a terminal for eyes, on a pipe (or with --json) as JSON lines, with ``out`` in the format that came in."""
    import sys
    from pathlib import Path

    from fitune.cli.render import say, screen, show_json, show_prediction
    from fitune.hf import keep_memory
    from fitune.predicting import Predictor
    from fitune.values import Refusal

    opened = None
    file = texts[0] if len(texts) == 1 else None
    if file is not None and file != "-" and _is_file(file):
        from fitune.data import stream

        opened = stream(file, labelled=False, **reading)
    elif out is not None:
        raise Refusal(_("there is no file of this name"), where=str(file), next_step=_("--out belongs to a file."))
    elif texts == ["-"]:
        texts = [line.rstrip("\n") for line in sys.stdin if line.strip()]
    else:
        _refuse_file_names(run, texts)
    keep_memory()
    predictor = Predictor(run, engine=engine)
    predictions: Iterable[Any] = predictor(texts) if opened is None else predictor.stream(opened)
    if out is not None and opened is not None:
        from fitune.data import write

        write(Path(out), predictions, opened.format)
        say(_("Written: {path}", path=out))
    else:
        for prediction in predictions:
            if as_json or not screen().is_terminal:
                show_json(prediction.to_json())
            else:
                show_prediction(prediction)
    for skipped in opened.skipped if opened is not None else ():
        sys.stderr.write(f"{skipped.source}: {skipped.reason}\n")


def _refuse_file_names(run: str, texts: list[str]) -> None:
    """A mistyped file name, a second file, or an unset variable must not come back labelled as if it were a text."""
    from fitune.values import Refusal

    for number, text in enumerate(texts, 1):
        if not text.strip():
            raise Refusal(
                _("the text is empty"),
                where=f"fitune predict {run}, " + _("text {number}", number=number),
                next_step=_("Put the text in quotes: fitune predict {run} TEXT, or name a file", run=run),
            )
        if _FILE_NAME.fullmatch(text) is None:
            continue
        if _is_file(text):
            found = _("{count} words, and this one is a file", count=len(texts))
            step = _("One file at a time: fitune predict {run} {file} -o OUT", run=run, file=text)
        else:
            found = _("there is no file of this name")
            step = _(
                "Check the path. If it is the text itself: echo {text} | fitune predict {run} -", text=text, run=run
            )
        raise Refusal(found, where=text, next_step=step)


def _is_file(text: str) -> bool:
    """A text may be too long for a file name, or hold characters that no file name can."""
    from pathlib import Path

    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False
