"""Logs in the shape of real ones: the expected finding comes first; healthy logs give nothing above a note."""

from collections import Counter

import pytest

from fitune.doctor import diagnose_log

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


def test_nothing_recognised_is_said_plainly_and_what_to_send_is_masked():
    text = 'token=hf_abcdefghijklmnop\n  File "/home/wanglei/train.py", line 3\nSomethingNobodyKnows: no idea\n'
    diagnosis = diagnose_log(text)
    assert diagnosis.findings == ()
    assert not diagnosis.recognised
    assert diagnosis.advice()
    assert "wanglei" not in diagnosis.to_send
    assert "hf_abcd" not in diagnosis.to_send
    assert "SomethingNobodyKnows" in diagnosis.to_send
