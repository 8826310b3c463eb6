"""What a person sees when a command does not end well: where, what, what next, and no traceback."""

import re
from pathlib import Path

import pytest

from fitune.values import Refusal
from tests.cli.conftest import Call


@pytest.mark.parametrize(
    ("words", "where", "found", "next_step"),
    [
        (["trian"], "fitune", "no command trian; did you mean train?", "fitune --help"),
        (["train"], "fitune train", "FILE is missing", "fitune train --help"),
        (["train", "x", "--batchsize", "3"], "fitune train", "did you mean --batch-size?", "fitune train --help"),
        (["train", "x", "--epochs"], "fitune", "--epochs needs a value", "--help"),
        (["train", "x", "--epochs", "many"], "--epochs", "must be a number", "fitune train --help"),
        (["train", "x", "--seed", "1.5"], "--seed", "must be a whole number", "fitune train --help"),
        (["demo", "--rows", "3"], "--rows", "must be at least 40", "fitune demo --help"),
        (["report", "a", "b"], "fitune report", "one word too many: b", "fitune report --help"),
        (["train", "nowhere.json"], "nowhere.json", "there is no such file", "training file"),
        (["train", "nowhere.toml"], "nowhere.toml", "there is no such file", "fitune init"),
        (["report", "nowhere"], "nowhere", "no such directory", "runs/"),
        (["demo", "--task", "chess"], "--task", "'chess' is no task", "classification"),
        (["check", *"abcd"], "fitune check", "4 files", "training file"),
        (["train", "here.json", "--precision", "fp8"], "--precision fp8", "not possible", "fp32"),
        (["train", "here.json", "--class-weights", "A=x"], "--class-weights", "'A=x' is not label=number", "A=2"),
        (["train", "here.json", "--epochs", "-1", "--head", "x"], "options", "2 fields are wrong", "fitune init"),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_refusals(command: Call, words: list[str], where: str, found: str, next_step: str, language: str) -> None:
    Path("here.json").write_text("")
    result = command(*words, "--lang", language) if words[-1] != "--epochs" else command("--lang", language, *words)
    assert result.code == 2
    assert result.out == ""
    assert "Traceback" not in result.err
    if language == "en":
        assert result.err.startswith(f"{where}: ")
        assert found in result.err
        assert next_step in result.err
        assert ("\n  -> " in result.err) == bool(next_step)
    else:
        assert re.search("[一-鿿]", result.err) or where == "--precision fp8"
    assert not Path("runs").exists()


def test_a_wrong_language_is_refused(command: Call) -> None:
    for words in (["--lang", "fr"], ["check", "x", "--lang"]):
        result = command(*words)
        assert result.code == 2
        assert result.err.startswith("--lang")
        assert "\n  -> " in result.err


@pytest.mark.parametrize(
    ("content", "code"), [(b"", "FT192"), (b"text,label\n", "FT192"), (b"\x89PNG\r\n\0\0", "FT191")]
)
def test_init_writes_nothing_about_a_file_that_cannot_be_read(command: Call, content: bytes, code: str) -> None:
    Path("bad.csv").write_bytes(content)
    Path("good.csv").write_text("text,label\n好,A\n坏,B\n", encoding="utf-8")
    for words in (["bad.csv"], ["good.csv", "--dev", "bad.csv"]):
        result = command("--lang", "en", "init", *words)
        assert result.code == 2
        assert result.err.startswith(f"[{code}] bad.csv: ")
    assert not Path("job.toml").exists()


def fails_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(directory: str) -> None:
        raise error

    monkeypatch.setattr("fitune.runs.Run.open", fail)


def test_a_bug_goes_into_a_file(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_with(monkeypatch, ZeroDivisionError("three\nlines\nof it"))
    result = command("report", "x")
    assert result.code == 1
    assert "ZeroDivisionError: three" in result.err
    assert "Traceback" not in result.err
    path = Path(re.search(r"All details are in (.*)", result.err)[1])  # type: ignore[index]
    log = path.read_text(encoding="utf-8")
    path.unlink()
    assert "Traceback (most recent call last)" in log
    assert "three\nlines" in log
    assert "'report'" in log


OUT_OF_MEMORY = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 7.79 GiB of which 512.00 MiB is "
    "free. Including non-PyTorch memory, this process has 7.20 GiB memory in use. Of the allocated memory 6.90 GiB is "
    "allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated."
)


def training_dies_of(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_arguments: object, **_settings: object) -> None:
        raise error

    Path("rows.json").write_text("".join(f'{{"text": "a{n}", "label": "{n % 2}"}}\n' for n in range(20)))
    monkeypatch.setattr("fitune.hf.resolve", lambda _name, _task: None)
    monkeypatch.setattr("fitune.training.train", fail)


def log_named_in(text: str) -> str:
    path = Path(re.search(r"(?:details are in|详细信息在) ?(.*)", text)[1])  # type: ignore[index]
    log = path.read_text(encoding="utf-8")
    path.unlink()
    return log


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_full_card_is_a_finding_and_no_bug(command: Call, monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    training_dies_of(monkeypatch, RuntimeError(OUT_OF_MEMORY))
    result = command("train", "rows.json", "--lang", language)
    assert result.code == 1
    assert result.err.startswith("[FT301] ")
    assert "\n  -> " in result.err
    assert "fitune explain FT301" in result.err
    assert "Traceback" not in result.err
    assert bool(re.search("[一-鿿]", result.err)) == (language == "zh")
    assert "Traceback (most recent call last)" in log_named_in(result.err)


@pytest.mark.parametrize("error", [KeyError("label"), AssertionError("no"), IndexError("list index out of range")])
def test_a_bug_in_training_is_called_one(command: Call, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    training_dies_of(monkeypatch, error)
    result = command("train", "rows.json")
    assert result.code == 1
    assert "mistake in fitune" in result.err
    assert type(error).__name__ in log_named_in(result.err)


def test_a_doctor_that_fails_hides_nothing(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise LookupError("the doctor is ill")

    training_dies_of(monkeypatch, RuntimeError(OUT_OF_MEMORY))
    monkeypatch.setattr("fitune.doctor.diagnose_log", fail)
    result = command("train", "rows.json")
    assert "mistake in fitune" in result.err
    log = log_named_in(result.err)
    assert "CUDA out of memory" in log
    assert "the doctor is ill" in log


def test_ctrl_c_is_no_error_message(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_with(monkeypatch, KeyboardInterrupt())
    result = command("report", "x")
    assert (result.code, result.err) == (130, "\nStopped.\n")


def test_a_code_stands_in_front(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_with(monkeypatch, Refusal("too much", where="a:1", next_step="take less", code="FT101"))
    assert command("report", "x").err == "[FT101] a:1: too much\n  -> take less\n"


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (FileExistsError(17, "File exists", "out"), "out: this path cannot be used (File exists)"),
        (NotADirectoryError(20, "Not a directory", "a/b"), "a/b: this path cannot be used (Not a directory)"),
        (FileNotFoundError(2, "No such file or directory", "out"), "out: this path cannot be used"),
        (PermissionError(13, "Permission denied", "out"), "[FT605] out: this path is closed to you"),
        (OSError(30, "Read-only file system", "out"), "[FT605] out: this path is closed to you"),
        (OSError(28, "No space left on device"), "[FT601] the disk is full"),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_path_that_refuses_is_no_bug(
    command: Call, monkeypatch: pytest.MonkeyPatch, error: OSError, found: str, language: str
) -> None:
    fails_with(monkeypatch, error)
    result = command("report", "x", "--lang", language)
    assert result.code == 2
    assert "\n  -> " in result.err
    assert "details" not in result.err
    if language == "en":
        assert result.err.startswith(found)
    else:
        assert re.search("[一-鿿].*\n  -> .*[一-鿿]", result.err)
        assert str(error.strerror) not in result.err


def test_a_file_that_fitune_lacks_is_a_bug(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    import fitune

    own = Path(fitune.__file__).parent / "no_such_page.html"
    fails_with(monkeypatch, FileNotFoundError(2, "No such file or directory", str(own)))
    result = command("report", "x")
    assert result.code == 1
    assert "mistake in fitune" in result.err
    log_named_in(result.err)


def test_a_folder_for_repairs_that_is_a_file(command: Call) -> None:
    rows = "".join(f"text,label\n{i % 2},{i % 2}\n" for i in range(20))
    Path("rows.csv").write_text(rows)
    Path("taken").write_text("mine")
    result = command("check", "rows.csv", "--fix", "taken")
    assert result.code == 2
    assert result.err.startswith("taken: this path cannot be used")
    assert Path("taken").read_text() == "mine"


def test_a_command_follows_a_sentence_without_its_full_stop() -> None:
    from fitune.cli.guard import fix_text
    from fitune.values import Fix

    assert fix_text(Fix(text="Keep the first.", safety="safe", command="fitune x")) == "Keep the first: fitune x"
    assert fix_text(Fix(text="只保留第一行。", safety="safe", command="fitune x")) == "只保留第一行: fitune x"
    assert fix_text(Fix(text="Correct these rows.", safety="safe")) == "Correct these rows."


@pytest.mark.parametrize("more", [[], ["--detach"]])
def test_a_path_that_is_not_there_is_refused_before_anything_is_told(command: Call, more: list[str]) -> None:
    Path("a.csv").write_text("text,label\n" + "甲乙,A\n丙丁,B\n" * 3, encoding="utf-8")
    result = command("train", "a.csv", "--dev", "nix.csv", *more)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("--dev nix.csv: there is no such file\n  -> ")
    Path("job.toml").write_text('train = "a.csv"\ntest = "nix.csv"\n')
    assert command("train", "job.toml").err.startswith("job.toml: test = nix.csv: there is no such file")
    assert not Path("runs").exists()


def test_a_run_that_is_refused_has_no_place(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    training_dies_of(monkeypatch, Refusal("no", where="x"))
    result = command("train", "rows.json")
    assert (result.code, result.out) == (2, "")
