"""The house rules of fitune's layout, as tests: floors, faces, budgets, texts."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "fitune"
FILES = sorted(SOURCE.rglob("*.py"))
ROOMS = sorted(p.parent.name for p in SOURCE.glob("*/__init__.py"))
WITHOUT_TORCH = ["catalog", "checkpoint", "cli", "data", "doctor", "machine", "messages", "runs", "values"]

FILE_LINES = 400
FUNCTION_LINES = 60
LINES_OF = {"hf/trainer.py": 300}


def python(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_the_floors_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_fitune_costs_nothing() -> None:
    python(
        "import sys, fitune\n"
        "heavy = {'torch', 'transformers', 'numpy', 'pydantic', 'typer', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )


def test_rooms_that_must_work_without_torch_do() -> None:
    python(
        "import sys\n"
        "for name in ('torch', 'transformers', 'tokenizers', 'accelerate', 'safetensors'):\n"
        "    sys.modules[name] = None\n"
        f"for room in {WITHOUT_TORCH}:\n"
        "    __import__(f'fitune.{room}')"
    )


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_a_face_shows_what_it_says(room: str) -> None:
    """Every name of ``__all__`` exists, once, in order of the alphabet."""
    face = importlib.import_module(f"fitune.{room}" if room else "fitune")
    names = getattr(face, "__all__", None)
    if names is None:
        pytest.skip("nothing in this room yet")
    assert len(set(names)) == len(names)
    rooms = {} if room else vars(face)["_ROOM_OF"]
    # A name of the front door whose room is still empty is a promise, not yet a mistake.
    promised = {n for n, r in rooms.items() if not hasattr(importlib.import_module(f"fitune.{r}"), "__all__")}
    missing = [name for name in names if name not in promised and not hasattr(face, name)]
    assert not missing
    assert set(names) - {"__version__", "_"} <= set(dir(face))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_budget(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    most = LINES_OF.get(path.relative_to(SOURCE).as_posix(), FILE_LINES)
    assert len(text.splitlines()) <= most
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not long


def test_no_text_lacks_its_chinese() -> None:
    script = str(ROOT / "scripts" / "messages.py")
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_no_room_without_tests() -> None:
    without = [room for room in ROOMS if not list((ROOT / "tests" / room).glob("test_*.py"))]
    allowed = {"messages", "values"}
    empty = {r for r in without if not getattr(importlib.import_module(f"fitune.{r}"), "__all__", None)}
    assert set(without) - allowed - empty == set()
