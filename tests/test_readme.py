"""What the READMEs and the documentation tell people to type is what there is."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest
import typer

from fitune.cli.app import VERBS, build_app

ROOT = Path(__file__).resolve().parent.parent
READMES = ["README.md", "README.zh-CN.md"]
PAGES = [*READMES, "CONTRIBUTING.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]


def commands(page: str) -> list[str]:
    """The lines of the page's ``sh`` blocks, without comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
    lines = [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def parse(line: str) -> None:
    """Let the parser read a fitune command as it would, and stop before it runs."""
    words = shlex.split(line)
    assert words.pop(0) == "fitune"
    words = [word for word in words if word not in ("|", "-h", "--help")]
    if "--lang" in words:
        at = words.index("--lang")
        del words[at : at + 2]
    assert words[0] in VERBS, line
    group: Any = typer.main.get_command(build_app())
    group.commands[words[0]].make_context(words[0], words[1:])


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_one(page: str) -> None:
    for line in commands(page):
        word = shlex.split(line)[0]
        if word == "fitune":
            parse(line)
        elif word == "sh" or (word == "python" and shlex.split(line)[1].startswith("scripts/")):
            assert (ROOT / shlex.split(line)[1]).is_file(), line
        else:
            assert word in ("pip", "git", "cd", "pytest", "ruff", "mkdocs", "python", "pre-commit"), line


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), target


def test_both_readmes_tell_the_same_commands() -> None:
    english, chinese = (commands(page) for page in READMES)
    assert english == chinese
    assert {"sh scripts/demo", "sh scripts/test"} <= set(english)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_reference_is_what_the_command_line_says(language: str) -> None:
    spec = util.spec_from_file_location("cli_reference", ROOT / "scripts" / "cli_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = ROOT / "docs" / language / "reference" / "cli.md"
    assert page.read_text(encoding="utf-8") == module.reference(language), "run: python scripts/cli_reference.py"


def test_both_languages_have_the_same_pages() -> None:
    english, chinese = (
        {p.relative_to(ROOT / "docs" / language).as_posix() for p in (ROOT / "docs" / language).rglob("*.md")}
        for language in ("en", "zh")
    )
    assert english == chinese


def fake_environment(folder: Path, log: Path) -> None:
    """A virtual environment whose programs only write down how they were called."""
    (folder / "bin").mkdir(parents=True)
    for name in ("fitune", "ruff", "pyright", "lint-imports"):
        (folder / "bin" / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "{log}"\n')
    (folder / "bin" / "python").write_text(
        f'#!/bin/sh\ncase "$1" in -c|-V) exec "{sys.executable}" "$@";; esac\necho "python $*" >> "{log}"\n'
    )
    for program in (folder / "bin").iterdir():
        program.chmod(0o755)


@pytest.mark.skipif(shutil.which("sh") is None, reason="no POSIX shell")
@pytest.mark.parametrize(
    ("script", "extras", "last"),
    [
        ("demo", "train,embedded", "fitune demo --task ner"),
        ("test", "dev", "python -m pytest -n 2 -m not slow --task ner"),
    ],
)
def test_the_two_commands(tmp_path: Path, script: str, extras: str, last: str) -> None:
    """They install once, torch first, and then run; the second time they only run."""
    log, venv = tmp_path / "log", tmp_path / "venv"
    fake_environment(venv, log)
    env = {**os.environ, "FITUNE_VENV": str(venv), "FITUNE_TORCH": "torch==9.9"}

    def run() -> list[str]:
        log.write_text("")
        subprocess.run(["sh", f"scripts/{script}", "--task", "ner"], cwd=ROOT, env=env, check=True, capture_output=True)
        return log.read_text().splitlines()

    first, second = run(), run()
    assert [line.split(" -q ")[1] for line in first if " pip install " in line] == ["torch==9.9", f"-e .[{extras}]"]
    assert first[-1] == second[-1] == last
    assert not [line for line in second if " pip " in line]


def test_continuous_integration_runs_the_tests() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    assert "set -euo pipefail" in text
    assert "sh scripts/test" in text
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
