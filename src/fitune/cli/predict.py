"""``fitune predict``: a text, or a whole file, through a trained model."""

import re
from collections.abc import Callable, Generator, Iterable
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
        workers: Annotated[
            int | None,
            typer.Option(
                "--workers",
                metavar="N",
                min=1,
                help=_("Processes that share the cores, each with the whole model in memory; for files, on a CPU."),
            ),
        ] = None,
        force: Annotated[bool, typer.Option("--force", help=_("Replace the file if it is there."))] = False,
        given: Any = None,
    ) -> None:
        predict_texts(run, texts, out, as_json, given, engine, workers, force=force)

    fields = ("format", "text_column", "text_pair_column", "label_column")
    add_verb(app, "predict", with_job_options(predict, fields), _("Use a trained model on a text or a file."))


def predict_texts(
    run: str,
    texts: list[str],
    out: str | None,
    as_json: bool,
    reading: dict[str, Any],
    engine: str | None = None,
    workers: int | None = None,
    *,
    force: bool = False,
) -> None:
    """On a terminal for eyes, on a pipe (or with --json) as JSON lines, with ``out`` in the format that came in."""
    import sys
    from contextlib import closing

    from fitune.hf import keep_memory

    file = texts[0] if len(texts) == 1 else None
    if file is not None and file != "-" and _is_file(file):
        from fitune.cli.progress import counted
        from fitune.data import stream, whereabouts

        _refuse_to_replace(file, out, force)
        opened = stream(file, labelled=False, **reading)
        keep_memory()
        # Closed whatever happens: other processes may be at work behind it.
        with (
            closing(_of_file(run, opened, engine, workers)) as predictions,
            closing(counted(predictions, opened, own_line=out is None)) as shown,
        ):
            rows = _Tally(shown)
            _put(rows, out, opened.format, as_json, original=file)
        if not rows.count:
            sys.stderr.write(_("{path}: no rows to predict", path=file) + "\n")
        for skipped in opened.skipped:
            sys.stderr.write(f"{whereabouts(skipped.source)}: {skipped.reason}\n")
        return
    _refuse_without_file(file, out, workers)
    if texts == ["-"]:
        texts = [line.rstrip("\n") for line in sys.stdin if line.strip()]
    else:
        _refuse_file_names(run, texts)
    keep_memory()
    _put(_predictor(run, engine)(texts), None, None, as_json)


class _Tally:
    """Passes predictions on and counts them."""

    def __init__(self, predictions: Iterable[Any]) -> None:
        self._predictions, self.count = predictions, 0

    def __iter__(self) -> Generator[Any, None, None]:
        for prediction in self._predictions:
            self.count += 1
            yield prediction


def _of_file(run: str, rows: Iterable[Any], engine: str | None, workers: int | None) -> Generator[Any, None, None]:
    if workers is not None and workers > 1:
        from fitune.predicting import predict_with_workers

        yield from predict_with_workers(run, rows, workers=workers, engine=engine)
    else:
        yield from _predictor(run, engine).stream(rows)


def _predictor(run: str, engine: str | None) -> Any:
    """Loaded without what transformers would take along: 4 CPU-seconds instead of 6.7 to the first prediction."""
    from fitune.hf import light_imports

    with light_imports():
        from fitune.predicting import Predictor

        return Predictor(run, engine=engine)


def _put(predictions: Iterable[Any], out: str | None, format: Any, as_json: bool, original: str | None = None) -> None:
    from pathlib import Path

    from fitune.cli.render import say, screen, show_json, show_prediction

    if out is not None:
        from fitune.data import write

        write(Path(out), predictions, format, original=original)
        say(_("Written: {path}", path=out))
        return
    for prediction in predictions:
        if as_json or not screen().is_terminal:
            show_json(prediction.to_json())
        else:
            show_prediction(prediction)


def _refuse_to_replace(file: str, out: str | None, force: bool) -> None:
    """Before the model is loaded. The file that is read is never written: labels in it would be lost."""
    from pathlib import Path

    from fitune.values import Refusal

    if out is None or not Path(out).is_file():
        return
    if Path(out).samefile(file):
        raise Refusal(
            _("this is the file that is read"), where=f"--out {out}", next_step=_("Give the result another name.")
        )
    if not force:
        raise Refusal(_("the file is already there"), where=out, next_step=_("Add --force to replace it."))


def _refuse_without_file(file: str | None, out: str | None, workers: int | None) -> None:
    from fitune.values import Refusal

    if out is not None:
        raise Refusal(_("there is no file of this name"), where=str(file), next_step=_("--out belongs to a file."))
    if workers is not None and workers > 1:
        raise Refusal(
            _("several processes are for a file; these are texts"),
            where="--workers",
            next_step=_("Leave it out, or name a file."),
        )


def _refuse_file_names(run: str, texts: list[str]) -> None:
    """A mistyped file name, a second file, or an unset variable must not come back labelled as if it were a text."""
    from pathlib import Path

    from fitune.values import Refusal

    for number, text in enumerate(texts, 1):
        if "/" in text and _is(Path.is_dir, text):
            step = _("Name a file in it.")
            raise Refusal(_("this is a folder, not a file"), where=text, next_step=step)
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
    from pathlib import Path

    return _is(Path.is_file, text)


def _is(kind: Callable[[Any], bool], text: str) -> bool:
    """A text may be too long for a file name, or hold characters that no file name can."""
    from pathlib import Path

    try:
        return kind(Path(text))
    except (OSError, ValueError):
        return False
