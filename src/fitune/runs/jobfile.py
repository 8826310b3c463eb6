"""``job.toml``: a Job as a file for people, every field with its sentence; written and read here."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import tomlkit
from pydantic import ValidationError
from tomlkit.exceptions import ParseError
from tomlkit.items import InlineTable

from fitune.messages import _
from fitune.values import Job, Refusal


def job_sentences() -> dict[str, str]:
    """Field of Job -> its sentence in the reader's language: the comments of job.toml and the help of the options."""
    return {
        "train": _("Training file, in any readable format."),
        "dev": _("Development file; without one a stratified, duplicate-free share of the training file is split off."),
        "test": _("Test file, scored once with the best model after training."),
        "task": _("ner or classification; recognised from the file when not given."),
        "model": _("A folder, a hub name, or embedded (a real pretrained encoder that needs no hub)."),
        "format": _("Overrules the recognised file format."),
        "text_column": _("Overrules the recognised text column."),
        "text_pair_column": _("Overrules the recognised second text column."),
        "label_column": _("Overrules the recognised label column."),
        "multi_label": _("Several labels per text; recognised from the file when not given."),
        "dev_fraction": _("Share of the training rows that becomes the development set when no file is given."),
        "head": _("Decoder of named-entity recognition: softmax or crf."),
        "max_length": _("Window in tokens, special tokens included; longer texts are split, never truncated."),
        "batch_size": _("Examples per optimizer step: a learning choice, whatever the memory."),
        "epochs": _("Passes over the training rows, at most; early stopping may end sooner."),
        "learning_rate": _("Peak learning rate of the encoder."),
        "head_learning_rate": _("Peak learning rate of the new head."),
        "weight_decay": _("AdamW's decay; never applied to biases and LayerNorm."),
        "warmup_fraction": _("Share of the steps in which the rate rises linearly; it then falls linearly to zero."),
        "max_grad_norm": _("Gradients are clipped to this norm; 0 switches clipping off."),
        "label_smoothing": _("Share of the target probability that is spread over all classes."),
        "class_weights": _("Weight of each class in the loss: balanced, or a weight for each label."),
        "patience": _("Stop after this many evaluations without improvement; 0 switches early stopping off."),
        "metric": _("Metric that picks the best model; its name is checked before step 1."),
        "normalize_quotes": _("Map curly quotes, dashes and ellipses to characters that the vocabulary has."),
        "lowercase": _("Lower-case the input; by default exactly when the vocabulary has no capitals."),
        "seed": _("Seeds initial weights, dropout, split and data order."),
    }


def job_rules() -> dict[str, str]:
    """Field that fitune chooses when it is empty -> the rule that ``training.defaults`` keeps, for people."""
    return {
        "head": _("crf for entities"),
        "max_length": _("what the model takes, at most 512"),
        "epochs": _("entities: 6 below 2,000 rows, else 4; classification: 3 below 5,000 rows, else 2"),
        "learning_rate": _("by hidden size: up to 512 2e-4 for entities, 1e-4 for classes; up to 768 3e-5; above 1e-5"),
        "head_learning_rate": _("20 times the encoder's, at least 1e-3"),
        "metric": _("f1 for entities and for several labels, accuracy for one label"),
    }


# What a commented-out line shows where the field is empty.
_SAMPLES: dict[str, Any] = {
    "dev": "dev.json",
    "test": "test.json",
    "task": "ner",
    "format": "columns",
    "text_column": "text",
    "text_pair_column": "text_b",
    "label_column": "label",
    "multi_label": True,
    "head": "crf",
    "max_length": 256,
    "epochs": 5,
    "learning_rate": 3e-5,
    "head_learning_rate": 1e-3,
    "class_weights": "balanced",
    "metric": "f1",
    "lowercase": True,
}


def _toml_value(value: Any) -> Any:
    if isinstance(value, dict):
        table: InlineTable = tomlkit.inline_table()
        table.update(value)
        return table
    return value


def job_toml(job: Job) -> str:
    """The text of a ``job.toml``: every field under its sentence; what fitune chooses is a commented line."""
    document = tomlkit.document()
    document.add(tomlkit.comment(_("What fitune learns. A line that starts with # is chosen by fitune.")))
    document.add(tomlkit.comment(_("Relative paths start in the folder in which you type the command.")))
    rules = job_rules()
    for field, sentence in job_sentences().items():
        value = getattr(job, field)
        document.add(tomlkit.nl())
        document.add(tomlkit.comment(sentence))
        if value is None and field in rules:
            document.add(tomlkit.comment(_("Chosen by fitune: {rule}.", rule=rules[field])))
        if value is None:
            document.add(tomlkit.comment(f"{field} = {tomlkit.item(_SAMPLES[field]).as_string()}"))
        else:
            document.add(field, _toml_value(value))
    return tomlkit.dumps(document)


def write_job_toml(job: Job, path: str | Path) -> None:
    """Write ``job`` with a comment above each field, in the reader's language. Overwrites."""
    Path(path).write_text(job_toml(job), encoding="utf-8")


def read_job_toml(path: str | Path) -> Job:
    """The Job in a file.

    Raises:
        Refusal: no such file, not TOML (with line and column), or wrong fields: all of them in one message.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise Refusal(
            _("there is no such file"),
            where=str(path),
            next_step=_("Write one with: fitune init TRAINING_FILE -o {path}", path=path),
        ) from None
    except UnicodeDecodeError as error:
        raise Refusal(
            _("not UTF-8 at byte {position}", position=error.start),
            where=str(path),
            next_step=_("Save the file as UTF-8."),
        ) from None
    try:
        plain = tomlkit.parse(text).unwrap()
    except ParseError as error:
        raise Refusal(
            _("not valid TOML: {error}", error=error),
            where=str(path),
            next_step=_('Texts stand in quotes (model = "bert-base-chinese"), one field a line.'),
        ) from None
    return job_from_fields(plain, where=str(path), text=text)


def job_from_fields(fields: dict[str, Any], *, where: str, text: str = "") -> Job:
    """A Job from plain values, or one Refusal that names every wrong field, at its line in ``text``."""
    try:
        return Job.model_validate(fields)
    except ValidationError as error:
        problems = _first_per_field(error)
        lines = [_problem(e["type"], _name(e["loc"]), _rule(e), e.get("input")) for e in problems]
        places = [at for e in problems if (at := _line_of(text, _name(e["loc"]).partition(".")[0]))]
        where = f"{where}:{min(places)}" if places else where
    raise Refusal(
        "\n".join(lines)
        if len(lines) == 1
        else _("{count} fields are wrong:", count=len(lines)) + "\n  " + "\n  ".join(lines),
        where=where,
        next_step=_("All fields with their meaning: fitune init TRAINING_FILE -o job.toml"),
    )


def _line_of(text: str, field: str) -> int:
    """The line of job.toml on which the field stands; 0 where it does not."""
    written = re.compile(rf"""\s*["']?{re.escape(field)}["']?\s*[.=]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if written.match(line)), 0)


def _first_per_field(error: ValidationError) -> list[Any]:
    """A union reports one problem for each member: one line a field is enough, the one that goes deepest."""
    first: dict[Any, Any] = {}
    for problem in error.errors(include_url=False):
        field = problem["loc"][0] if problem["loc"] else ""
        if field not in first or len(problem["loc"]) > len(first[field]["loc"]):
            first[field] = problem
    return list(first.values())


def _problem(kind: str, field: str, message: str, found: Any) -> str:
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(field, Job.model_fields, n=1)
        unknown = _("{field}: there is no such field", field=field)
        return unknown + _("; did you mean {near}?", near=near[0]) if near else unknown
    if kind == "missing":
        return _("{field}: missing", field=field)
    shown = str(found).lower() if isinstance(found, bool) else repr(found)
    return _("{field} = {found}: {message}", field=field, found=shown, message=message)


def _name(place: tuple[Any, ...]) -> str:
    """The field; of a table also the key."""
    names = [str(part) for part in place]
    return f"{names[0]}.{names[-1]}" if names[:1] == ["class_weights"] and len(names) > 2 else "".join(names[:1])


def _rule(problem: Any) -> str:
    """What the field may hold; pydantic's own words, which are English, for the kinds that no field has today."""
    kind, limits = problem["type"], problem.get("ctx", {})
    if problem["loc"][:1] == ("class_weights",):
        # A union: each of its members complains of not being the other.
        return (
            _("must be a number greater than 0, such as 1 or 2.5")
            if len(problem["loc"]) > 2
            else _('must be "balanced", or a number for each label')
        )
    match kind:
        case "greater_than":
            return _("must be greater than {limit}", limit=limits["gt"])
        case "greater_than_equal":
            return _("must be at least {limit}", limit=limits["ge"])
        case "less_than":
            return _("must be less than {limit}", limit=limits["lt"])
        case "less_than_equal":
            return _("must be at most {limit}", limit=limits["le"])
        case "float_type" | "float_parsing":
            return _("must be a number")
        case "finite_number":
            return _("must be finite")
        case "int_type" | "int_parsing" | "int_from_float" | "int_parsing_size":
            return _("must be a whole number")
        case "bool_type" | "bool_parsing":
            return _("must be true or false")
        case "string_type":
            return _("must be a text in quotes")
        case "literal_error":
            return _("must be one of {choices}", choices=limits["expected"].replace(" or ", ", "))
        case "value_error":
            return _("must not be empty")
        case _:
            return problem["msg"]
