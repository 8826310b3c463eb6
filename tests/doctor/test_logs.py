# ruff: noqa: E501
"""Logs in the shape of real ones: the expected finding comes first; healthy logs give nothing above a note."""

import json
from collections import Counter

import pytest

from fitune.doctor import diagnose_log
from fitune.doctor.needles import needles

from .corpus import SPOILS, cases, spoiled

# Measured when the corpus was last extended; 95 % is what was promised.
LEAST_RIGHT = 0.95


def test_there_are_enough_logs_and_every_family_has_one():
    found = cases()
    assert len(found) >= 120
    assert len({case.code for case in found}) >= 60
    assert len(found) == len({case.name for case in found})


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_expected_finding_comes_first(case):
    findings = diagnose_log(case.text, "error.log").findings
    assert [finding.code for finding in findings][:1] == [case.code], [(f.code, f.confidence) for f in findings]


def test_spoiled_logs_are_right_at_rank_one():
    wrong = Counter()
    total = 0
    for name, code, raw in spoiled():
        total += 1
        findings = diagnose_log(raw, "error.log").findings
        if [finding.code for finding in findings][:1] != [code]:
            wrong[f"{name}: {code} but {[f.code for f in findings][:3]}"] += 1
    assert len(SPOILS) == 8
    assert 1 - len(wrong) / total >= LEAST_RIGHT, "\n".join(wrong)


def test_evidence_names_file_and_line():
    text = "fine\nfine\nRuntimeError: CUDA error: invalid device ordinal\n"
    finding = diagnose_log(text, "out/error.log").findings[0]
    assert finding.evidence[0].startswith("out/error.log:3: RuntimeError")


def test_wrappers_of_containers_and_loggers_are_taken_off():
    rows = "Traceback (most recent call last):\n  File \"/app/t.py\", line 3, in <module>\n    y = label2id[t]\nKeyError: '体育'"
    lines = rows.split("\n")
    shapes = [
        [json.dumps({"log": line + "\n", "stream": "stderr"}) for line in lines],
        [f"2025-10-07T03:11:04.0001Z stderr F {line}" for line in lines],
        [f"2025-09-14 22:07:01,123 - ERROR - {line}" for line in lines],
        [f"train-1  | {line}" for line in lines],
        [f"│ {line:<60} │" for line in lines],
    ]
    for shape in shapes:
        assert [f.code for f in diagnose_log("\n".join(shape)).findings][:1] == ["FT520"], shape


def test_a_launchers_own_traceback_is_not_the_exception_the_program_died_of():
    text = (
        'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nValueError: No valid checkpoint found in '
        'output directory (out)\nTraceback (most recent call last):\n  File "/usr/bin/torchrun", line 8, in <module>\n'
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \ntrain.py FAILED\n  exitcode  : 1 (pid: 7)\n"
    )
    assert [f.code for f in diagnose_log(text).findings] == ["FT623"]


def test_a_mistake_of_the_script_is_quoted_and_gives_way_to_every_other_error():
    text = "Traceback (most recent call last):\n  File \"t.py\", line 7, in <module>\n    print(modle)\nNameError: name 'modle' is not defined\n"
    finding = diagnose_log(text).findings[0]
    assert finding.code == "FT829"
    assert finding.evidence[0] == "log:3: t.py: print(modle)"
    both = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n" + text
    assert [f.code for f in diagnose_log(both).findings] == ["FT301"]


def test_an_error_that_training_got_over_is_no_finding():
    retry = "'(ReadTimeoutError(\"HTTPSConnectionPool(host='hf-mirror.com', port=443): Read timed out.\"))' thrown while requesting HEAD\n"
    losses = "{'loss': 1.2, 'epoch': 0.1}\n{'loss': 0.8, 'epoch': 0.2}\n"
    assert all(f.severity == "note" for f in diagnose_log(retry + losses).findings)
    assert diagnose_log(losses + retry).findings[0].code == "FT722"


def test_nothing_recognised_is_said_plainly_and_what_to_send_is_masked():
    text = 'token=hf_abcdefghijklmnop\n  File "/home/wanglei/train.py", line 3\nSomethingNobodyKnows: no idea\n'
    diagnosis = diagnose_log(text)
    assert diagnosis.findings == ()
    assert not diagnosis.recognised
    assert diagnosis.advice()
    assert "wanglei" not in diagnosis.to_send
    assert "hf_abcd" not in diagnosis.to_send
    assert "SomethingNobodyKnows" in diagnosis.to_send


def test_looking_for_words_first_changes_no_finding(monkeypatch):
    some = cases()[::12]
    quick = [[f.code for f in diagnose_log(case.text).findings] for case in some]
    monkeypatch.setattr("fitune.doctor.log.may_match", lambda pattern, text: True)
    assert [[f.code for f in diagnose_log(case.text).findings] for case in some] == quick


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"CUDA out of memory", {"cuda out of memory"}),
        (r"(?:gpu|npu) ran \d+ \w+ out", {" ran "}),
        (r"^\s*Killed\s*$|SIGKILL", {"killed", "sigkill"}),
        (r"\d+|abc", None),
        (r"(?:abcd)?ef", None),
    ],
)
def test_the_words_that_a_pattern_needs(pattern, words):
    assert needles(pattern) == words
