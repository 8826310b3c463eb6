"""The verbs, put together after the language is known."""

import functools
import gettext
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from fitune import __version__
from fitune.cli.guard import guarded
from fitune.messages import _

# In the order of the help: one file of this folder each.
VERBS = (
    "demo",
    "check",
    "plan",
    "train",
    "init",
    "predict",
    "report",
    "runs",
    "attach",
    "stop",
    "baseline",
    "models",
    "cards",
    "serve",
    "export",
    "push",
    "doctor",
    "diagnose",
    "explain",
)


class _Command(TyperCommand):
    """One verb; its --help speaks the reader's language."""

    def get_help_option(self, ctx: Any) -> Any:
        return _in_words(super().get_help_option(ctx))

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        # Some versions of the parser put what is required into braces.
        pieces = " ".join(self.collect_usage_pieces(ctx)).replace("{", "").replace("}", "")
        formatter.write_usage(ctx.command_path, pieces, prefix=_("Usage: "))


class _Group(TyperGroup):
    """All verbs, in the order of VERBS."""

    def get_help_option(self, ctx: Any) -> Any:
        return _in_words(super().get_help_option(ctx))

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage(ctx.command_path, _("COMMAND ..."), prefix=_("Usage: "))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        # The parser cuts each sentence at the edge of the screen; a line break is better than half a sentence.
        with formatter.section(gettext.gettext("Commands")):
            formatter.write_dl([(name, str(self.commands[name].help)) for name in self.list_commands(ctx)])


def _in_words(option: Any) -> Any:
    if option is not None:
        option.help = _("Show this help and exit.")
    return option


def build_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """The whole command line in the language that is set now.

    ``arguments``: what was typed; the files of other verbs are left alone when the first word is a verb.
    """
    app = typer.Typer(
        cls=_Group,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help=_("Fine-tune an encoder for entities or text classes, on the card you have."),
    )

    def top(
        version: Annotated[
            bool, typer.Option("--version", help=_("Show the version."), callback=_print_version, is_eager=True)
        ] = False,
        lang: Annotated[str, typer.Option("--lang", metavar="zh|en", help=_("Language; may stand anywhere."))] = "",
    ) -> None:
        """Taken out of the words before they come here (start.py); declared for the help."""

    app.callback()(top)
    wanted = [v for v in VERBS if v == next(iter(arguments), None)] or VERBS
    for verb in wanted:
        import_module(f"fitune.cli.{verb}").add(app)
    return app


def add_verb(app: typer.Typer, name: str, function: Callable[..., Any], help_text: str, epilog: str = "") -> None:
    """Register one verb, with a sentence below its options.

    Whatever it raises is said by ``guarded``, before the parser can say it in its own way.
    """

    @functools.wraps(function)
    def run(*arguments: Any, **named: Any) -> None:
        with guarded([name, repr(named)]):
            function(*arguments, **named)

    app.command(name, cls=_Command, help=help_text, epilog=epilog or None)(run)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fitune {__version__}")
        raise typer.Exit
