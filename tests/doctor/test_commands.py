"""What pages, fixes and messages tell people to type is what there is, in both languages."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import fitune
from fitune.cli.app import VERBS, build_app
from fitune.doctor import all_rules

SOURCE = Path(fitune.__file__).parent
GROUP = typer.main.get_command(build_app())
OPTIONS = {
    verb: {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)}
    for verb, command in GROUP.commands.items()  # type: ignore[attr-defined]
}


def wrong_in(text: str, *, prose: bool) -> list[str]:
    """The commands in a text that do not exist. In prose "fitune stops" is no command; "fitune stop --x" is one."""
    found: list[str] = []
    for match in re.finditer(
        r"(?<![\w./-])(?<!from )(?<!-n )fitune ([a-z]+)((?:[ =]+(?!fitune\b)[^\s`，。；、（）;|]+)*)", text
    ):
        verb, rest = match[1], match[2]
        options = re.findall(r"(?<=[ ])--[a-z][a-z0-9-]*", rest)
        if verb not in VERBS:
            if not prose or re.match(r" +(?:--|[A-Z]{2,}\b|import\b)", rest):
                found.append(match[0])
        else:
            known = {*OPTIONS[verb], "--lang", "--help"}
            found += [f"fitune {verb} {option}" for option in options if option not in known]
    return found


def pages() -> Iterator[tuple[str, str]]:
    for rule in all_rules():
        for language in ("en", "zh"):
            yield f"{rule.code} {language}", rule.page(language).markdown()


def test_every_command_of_a_page_is_one():
    wrong = {
        name: found
        for name, text in pages()
        if (
            found := [
                bad
                for span in re.findall(r"`+([^`]+)`+", text)
                for bad in wrong_in(" ".join(span.split()), prose=False)
            ]
        )
    }
    assert wrong == {}


def test_every_command_of_a_fix_is_one():
    wrong: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            values = []
            if (isinstance(node, ast.keyword) and node.arg == "command") or (
                isinstance(node, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id == "COMMAND" for t in node.targets)
            ):
                values = [node.value]
            for value in values:
                text = value.value if isinstance(value, ast.Constant) else None
                if isinstance(text, str) and (found := wrong_in(text, prose=False)):
                    wrong.setdefault(str(path.relative_to(SOURCE)), []).extend(found)
    assert wrong == {}


def test_every_command_of_a_message_is_one_in_both_languages():
    babel = pytest.importorskip("babel.messages.pofile")
    wrong: dict[str, list[str]] = {}
    for path in sorted((SOURCE / "messages" / "zh").glob("*.po")):
        with path.open("rb") as file:
            for message in babel.read_po(file, locale="zh"):
                for text in (message.id, message.string) if message.id else ():
                    if found := wrong_in(str(text), prose=True):
                        wrong.setdefault(path.name, []).extend(found)
    assert wrong == {}


def test_a_command_that_is_not_there_is_noticed():
    assert wrong_in("fitune model import FOLDER", prose=True) == ["fitune model import FOLDER"]
    assert wrong_in("see fitune plan --cards", prose=True) == ["fitune plan --cards"]
    assert wrong_in("fitune stops at the first such batch", prose=True) == []
    assert wrong_in("fitune export RUN --to onnx --int8", prose=False) == []
