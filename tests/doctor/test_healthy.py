"""Nothing above a note on at least two hundred healthy logs and scripts."""

from fitune.doctor import diagnose_log
from fitune.doctor.diagnosis import diagnose_script

from . import healthy
from .corpus import FOLDER, healthy_cases


def loud(findings):
    return [
        (finding.code, finding.severity, finding.evidence[:1]) for finding in findings if finding.severity != "note"
    ]


def test_healthy_logs_give_no_warning():
    wrong = {name: found for name, raw in healthy.logs() if (found := loud(diagnose_log(raw).findings))}
    assert wrong == {}


def test_healthy_scripts_give_no_warning():
    wrong = {name: found for name, text in healthy.scripts() if (found := loud(diagnose_script(text).findings))}
    assert wrong == {}


def test_scripts_of_many_styles_give_no_warning():
    blocks = (FOLDER.parent / "scripts" / "healthy.txt").read_text(encoding="utf-8").split("=== ")[1:]
    scripts = dict(block.split("\n", 1) for block in blocks)
    assert len(scripts) >= 25
    wrong = {name: found for name, text in scripts.items() if (found := loud(diagnose_script(text).findings))}
    assert wrong == {}


def test_frightening_words_are_no_finding():
    wrong = {name: found for name, text in healthy_cases() if (found := loud(diagnose_log(text).findings))}
    assert wrong == {}
    assert len(list(healthy_cases())) >= 60


def test_there_are_two_hundred():
    assert len(list(healthy.logs())) + len(list(healthy.scripts())) >= 200
