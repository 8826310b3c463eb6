"""``fitune check``: what is in the files, and what is wrong with them."""

from typing import Annotated, Any

import typer

from fitune.cli.app import add_verb
from fitune.messages import _, _n


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""
    from fitune.cli.options import READING, with_job_options

    def check(
        files: Annotated[
            list[str], typer.Argument(metavar="TRAIN [DEV] [TEST]", help=_("One to three files, in this order."))
        ],
        fix: Annotated[
            str | None, typer.Option(metavar="OUT", help=_("Folder for repaired copies (safe repairs only)."))
        ] = None,
        model: Annotated[
            str | None, typer.Option(metavar="NAME", help=_("Also check how this model's tokenizer reads the texts."))
        ] = None,
        force: Annotated[bool, typer.Option("--force", help=_("Replace repaired copies that are there."))] = False,
        as_json: Annotated[bool, typer.Option("--json", help=_("For programs: one JSON value."))] = False,
        given: Any = None,
    ) -> None:
        check_files(files, fix, model, as_json, given, force=force)

    add_verb(
        app, "check", with_job_options(check, READING), _("Say what is in your files and what is wrong with them.")
    )


def check_files(
    files: list[str], fix: str | None, model: str | None, as_json: bool, reading: dict[str, Any], *, force: bool = False
) -> None:
    """Exit code 1 when a finding is an error."""
    from fitune.values import Refusal

    if len(files) > 3:
        raise Refusal(
            _("{count} files are too many", count=len(files)),
            where="fitune check",
            next_step=_("Name the training file, then the development file, then the test file."),
        )
    from fitune.cli.render import say, show_findings, show_json
    from fitune.data import check, read

    splits: dict[str, str] = dict(zip(("train", "dev", "test"), files, strict=False))
    rows_by_split = {split: read(path, **reading) for split, path in splits.items()}
    encoder = None
    if model is not None:
        from fitune.hf import load_tokenizer, make_encoder, resolve

        encoder = make_encoder(load_tokenizer(resolve(model, rows_by_split["train"].task).folder))
    found = check(rows_by_split, encoder)
    if as_json:
        show_json(found.model_dump(mode="json"))
    else:
        for split, rows in rows_by_split.items():
            show_rows(split, splits[split], rows)
        show_findings(found.findings)
        if not found.findings:
            say(_("Nothing to complain about."), "green")
    if fix is not None:
        write_repaired(rows_by_split, splits, fix, force=force)
    if any(finding.severity == "error" for finding in found.findings):
        raise SystemExit(1)


def show_rows(split: str, path: str, rows: Any) -> None:
    """What was recognised in one file. What was left out, or seems odd, comes as findings."""
    from fitune.cli.render import say

    format_ = rows.format
    say(
        _(
            "{split}: {path}: {rows} ({format}, {encoding}), {labels}",
            split=split,
            path=path,
            rows=_n("{count} row", "{count} rows", len(rows.examples)),
            format=format_.name,
            encoding=format_.encoding,
            labels=_n("{count} label", "{count} labels", len(rows.labels)),
        ),
        "bold",
    )
    names = ", ".join(rows.labels[:20])
    say(f"    {rows.task or '?'}: {names}{' …' if len(rows.labels) > 20 else ''}")
    if format_.evidence:
        say(f"    {format_.evidence}", "dim")


def write_repaired(rows_by_split: dict[str, Any], paths: dict[str, str], folder: str, *, force: bool = False) -> None:
    """Repaired copies under the files' own names, never over the originals, and over other files only by ``force``."""
    from pathlib import Path

    from fitune.cli.render import say
    from fitune.data import repair, summary, write
    from fitune.values import Refusal

    out = Path(folder)
    if any(out.resolve() == Path(path).resolve().parent for path in paths.values()):
        raise Refusal(
            _("the originals lie in this folder"), where=folder, next_step=_("Name another folder after --fix.")
        )
    taken = next((target for path in paths.values() if (target := out / Path(path).name).exists()), None)
    if taken is not None and not force:
        raise Refusal(_("the file is already there"), where=str(taken), next_step=_("Add --force to replace it."))
    out.mkdir(parents=True, exist_ok=True)
    for split, rows in rows_by_split.items():
        repaired, changes = repair(rows)
        target = out / Path(paths[split]).name
        write(target, repaired.examples, rows.format, original=paths[split])
        changed = _n("{count} change", "{count} changes", len(changes))
        say(_("Repaired copy: {path} ({changes})", path=target, changes=changed))
        for line in summary(changes):
            say(f"    {line}")
