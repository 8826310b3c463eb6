"""Write docs/en/reference/cli.md and docs/zh/reference/cli.md from the command line itself.

python scripts/cli_reference.py
"""

from pathlib import Path
from typing import Any

import typer

from fitune.cli.app import VERBS, build_app
from fitune.messages import set_language

DOCS = Path(__file__).resolve().parent.parent / "docs"
WORDS = {
    "en": ("Command line", "argument or option", "what it does"),
    "zh": ("命令行", "参数或选项", "作用"),
}


def reference(language: str) -> str:
    """The page, as Markdown."""
    set_language(language)  # type: ignore[arg-type]
    title, option, meaning = WORDS[language]
    commands: dict[str, Any] = typer.main.get_command(build_app()).commands  # type: ignore[attr-defined]
    parts = [f"# {title}\n\n<!-- python scripts/cli_reference.py -->\n"]
    for verb in VERBS:
        parts.append(f"\n## fitune {verb}\n\n{commands[verb].help}\n\n| {option} | {meaning} |\n| --- | --- |\n")
        parts += [f"| {spelling(p)} | {cell(p.help or '')} |\n" for p in commands[verb].params]
        if commands[verb].epilog:
            parts.append(f"\n{commands[verb].epilog}\n")
    return "".join(parts)


def spelling(parameter: Any) -> str:
    """How the argument or option is typed."""
    if parameter.param_type_name == "argument":
        return f"`{cell(parameter.metavar or parameter.name)}`"
    value = parameter.metavar or ""
    names = [*parameter.opts, *parameter.secondary_opts]
    return " ".join(f"`{cell(name + (f' {value}' if value and name.startswith('--') else ''))}`" for name in names)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for language in WORDS:
        path = DOCS / language / "reference" / "cli.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(reference(language), encoding="utf-8")
        print(path)
