"""The fields of a Job as options, for every verb that takes a Job: written once, in values/job.py."""

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from pydantic_core import PydanticUndefined

from fitune.messages import _
from fitune.runs import job_from_fields, job_rules, job_sentences, read_job_toml
from fitune.values import Job, Refusal

READING = ("task", "format", "text_column", "text_pair_column", "label_column", "multi_label")
"""Fields that say how files are read."""
_METAVARS = {
    "dev": "FILE",
    "test": "FILE",
    "task": "ner|classification",
    "model": "NAME|FOLDER",
    "format": "NAME",
    "text_column": "NAME",
    "text_pair_column": "NAME",
    "label_column": "NAME",
    "head": "softmax|crf",
    "class_weights": "balanced|A=2,B=1",
    "metric": "NAME",
}
SPLITS = ("dev", "test", "dev_fraction", "seed")
"""Fields that say which rows are which."""


def with_job_options(function: Callable[..., Any], fields: Sequence[str]) -> Callable[..., Any]:
    """``function(..., given={field: value})`` as a command that has an option for each of ``fields``.

    ``given`` holds the options that were typed and nothing else, so that a job.toml keeps what was not.
    """
    own = inspect.signature(function)
    sentences = job_sentences()
    options = [
        inspect.Parameter(f"job_{field}", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for field in fields
        for option in [_option(field, sentences[field])]
    ]

    @functools.wraps(function)
    def run(**named: Any) -> Any:
        given = {
            name.removeprefix("job_"): value
            for name, value in named.items()
            if name.startswith("job_") and value is not None
        }
        rest = {name: value for name, value in named.items() if not name.startswith("job_")}
        return function(**rest, given=given)

    kept = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own.parameters.values() if p.name != "given"]
    run.__signature__ = own.replace(parameters=[*kept, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in [*kept, *options]}
    # The parser would look through the wrapper at the function without the options.
    del run.__wrapped__  # type: ignore[attr-defined]
    return run


def _option(field: str, sentence: str) -> Any:
    info = Job.model_fields[field]
    kinds = set(get_args(info.annotation)) or {info.annotation}
    name = "--" + field.replace("_", "-")
    # The parser's own default is None, "not typed": what holds then is told here.
    if info.default not in (None, PydanticUndefined) and info.default is not False:
        sentence += " " + _("[default: {}]").format(info.default)
    elif rule := job_rules().get(field):
        sentence += " " + _("[default: {}]").format(rule)
    settings: dict[str, Any] = {"help": sentence, "show_default": False}
    if bool in kinds:
        return Annotated[bool | None, typer.Option(f"{name}/--no-{name[2:]}", **settings)]
    if int in kinds:
        return Annotated[int | None, typer.Option(name, metavar="N", **settings)]
    if float in kinds and field != "class_weights":
        return Annotated[float | None, typer.Option(name, metavar="X", **settings)]
    return Annotated[str | None, typer.Option(name, metavar=_METAVARS[field], **settings)]


def job_of(file: str, given: dict[str, Any]) -> Job:
    """The Job that ``file`` (a job.toml, or a data file) and the typed options describe.

    Raises:
        Refusal: no such file, or wrong fields (all of them at once).
    """
    fields: dict[str, Any] = {"train": file}
    if Path(file).suffix == ".toml":
        fields = read_job_toml(file).model_dump(exclude_defaults=True)
    elif not Path(file).exists():
        raise Refusal(_("there is no such file"), where=file, next_step=_("Name your training file, or a job.toml."))
    if isinstance(weights := given.get("class_weights"), str):
        given = {**given, "class_weights": _weights(weights)}
    job = job_from_fields({**fields, **given}, where=_("options") if given else file)
    for field in ("train", "dev", "test"):
        path = getattr(job, field)
        if path is not None and not Path(path).exists():
            raise Refusal(
                _("there is no such file"),
                where=f"--{field} {path}" if field in given else f"{file}: {field} = {path}",
                next_step=_("Check the path: ls {folder}", folder=Path(path).parent),
            )
    return job


def _weights(text: str) -> Any:
    if "=" not in text:
        return text
    weights: dict[str, float] = {}
    for part in text.split(","):
        label, _equals, number = part.rpartition("=")
        try:
            weights[label.strip()] = float(number)
        except ValueError:
            raise Refusal(
                _("{found!r} is not label=number", found=part),
                where="--class-weights",
                next_step="--class-weights A=2,B=1",
            ) from None
    return weights
