"""The command as a process of its own: how fast, how plain, how robust its output is."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

FITUNE = [sys.executable, "-m", "fitune"]


def environment(**changes: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("LANGUAGE", "LC_ALL", "LANG", "PYTHONUTF8")}
    return {**kept, **changes}


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    def cpu_seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*FITUNE, "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # The least of three: other processes on the machine make it slower, never quicker.
    assert min(cpu_seconds() for _ in range(3)) < 0.5
    code = (
        "import sys\nfrom fitune.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'transformers', 'sklearn', 'numpy', 'matplotlib', 'fastapi'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["report", "nowhere"], ["trian"]])
def test_no_colours_on_a_pipe(words: list[str]) -> None:
    done = subprocess.run(
        [*FITUNE, *words], capture_output=True, env=environment(LANG="C.UTF-8", TERM="xterm-256color")
    )
    assert b"\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("variables", "language"),
    [({"LANG": "zh_CN.UTF-8"}, "zh"), ({"LANG": "en_US.UTF-8"}, "en"), ({"LANG": "zh_CN", "LC_ALL": "C"}, "en")],
)
def test_the_locale_decides(variables: dict[str, str], language: str) -> None:
    env = environment(**variables, PYTHONIOENCODING="utf-8")
    out = subprocess.run([*FITUNE, "--help"], capture_output=True, env=env, check=True).stdout.decode()
    assert ("用法：" in out) == (language == "zh")
    assert ("Usage: " in out) == (language == "en")


@pytest.mark.parametrize("encoding", ["gbk", "ascii", "utf-8"])
def test_any_console_encoding_survives(tmp_path: Path, encoding: str) -> None:
    env = environment(LANG="zh_CN.UTF-8", PYTHONIOENCODING=encoding)
    done = subprocess.run([*FITUNE, "train", "没有😀é.json"], capture_output=True, env=env, cwd=tmp_path)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert ("没有这个文件" in done.stderr.decode(encoding)) == (encoding != "ascii")


def test_a_reader_that_leaves_is_no_error() -> None:
    done = subprocess.run(f'"{sys.executable}" -m fitune --help | true', shell=True, capture_output=True)
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr
