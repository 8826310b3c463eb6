"""The command line as users know it: a change here is a change for them."""

import re

import pytest

from fitune.cli.app import VERBS
from fitune.values import Job
from tests.cli.conftest import Call

READING = "format label-column multi-label no-multi-label task text-column text-pair-column"
OPTIONS = {
    "demo": "epochs folder model out rows task",
    "check": f"fix force json model {READING}",
    "train": "compile deadline detach fresh max-hours micro-batch out plan precision report-to",
    "plan": "allow card explain json out prices",
    "cards": "json mine",
    "init": "force out",
    "predict": "format json label-column out text-column text-pair-column engine force workers",
    "report": "open",
    "runs": "",
    "attach": "",
    "stop": "wait-minutes",
    "baseline": f"dev dev-fraction json seed test {READING}",
    "models": "json",
    "serve": "engine host port queue timeout token-file",
    "export": "dev int8 max-drop out to",
    "push": "dry-run hub public to",
}
JOB = {field.replace("_", "-") for field in Job.model_fields if field != "train"} | {
    "no-lowercase",
    "no-multi-label",
    "no-normalize-quotes",
}


def options_in(help_text: str) -> set[str]:
    return set(re.findall(r"--([a-z][a-z0-9-]+)", "\n".join(re.findall(r"^  (-.*?)(?:  |$)", help_text, re.M)))) - {
        "help"
    }


def test_the_verbs_are_those_of_the_table(command: Call) -> None:
    assert set(OPTIONS) <= set(VERBS)
    shown = command("--help")
    listed = re.findall(r"^  ([a-z]+) ", shown.out.partition("Commands:")[2], re.M)
    assert listed == list(VERBS)
    assert options_in(shown.out) == {"version", "lang"}


@pytest.mark.parametrize("verb", OPTIONS)
def test_options_of(command: Call, verb: str) -> None:
    expected = set(OPTIONS[verb].split()) | (JOB if verb in ("train", "init", "plan") else set())
    assert options_in(command(verb, "--help").out) == expected


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_is_chinese_where_it_should_be(command: Call, verb: str) -> None:
    words = [verb, "--help"] if verb else ["--help"]
    chinese, english = command("--lang", "zh", *words).out, command("--lang=en", *words).out
    assert english.isascii()
    sentences = re.findall(r"[A-Z][a-z]+ [a-z]+ [a-z]+.*", english)
    assert sentences
    assert not [line for line in sentences if line in chinese]
    assert chinese.startswith("用法：")


def test_the_language_may_stand_anywhere(command: Call) -> None:
    first, last = command("--lang", "zh", "report", "nix"), command("report", "nix", "--lang=zh")
    assert first.err == last.err
    assert "没有这个目录" in first.err


def test_no_words_show_the_help(command: Call) -> None:
    result = command()
    assert result.code == 0
    assert "Commands:" in result.out


def test_version(command: Call) -> None:
    from fitune import __version__

    assert command("--version").out == f"fitune {__version__}\n"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_sentence_of_the_verbs_is_cut(command: Call, language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = command("--help", "--lang", language).out
    assert "..." not in shown.partition("\n")[2]
    assert ("how good they are" in " ".join(shown.split())) == (language == "en")


def test_what_fitune_chooses_is_in_the_help_and_true(command: Call) -> None:
    from fitune.data import Format, Rows
    from fitune.training.defaults import resolve_defaults

    shown = " ".join(command("train", "--help").out.split())
    rows = Rows([], "ner", False, (), Format(name="x"))
    job = resolve_defaults(Job(train="x"), rows, hidden_size=768, longest_input=9000)
    assert f"[default: entities: {job.epochs:g} below 2,000 rows" in shown
    assert "up to 512 2e-4 for entities, 1e-4 for classes; up to 768 3e-5" in shown
    assert (job.learning_rate, job.max_length, job.head, job.metric) == (3e-5, 512, "crf", "f1")
    assert "[default: crf for entities]" in shown
    assert "--dev FILE" in shown
    assert "TEXT" not in shown
