"""The verbs doctor, diagnose and explain."""

import json
import subprocess
import sys

import pytest

from fitune.machine import Machine


def told(command, *words):
    """Exit code and the result."""
    result = command(*words)
    return result.code, result


@pytest.fixture
def recorded(monkeypatch):
    """A machine without a card, in place of this one."""
    monkeypatch.setattr("fitune.machine.probe", lambda **asked: Machine())


def test_doctor_prints_lines_and_its_exit_code_tells(command, recorded):
    code, out = told(command, "doctor", "--offline")
    assert code == 1, "no torch is a problem"
    assert "FT401" in out.out


def test_doctor_speaks_json(command, recorded):
    _code, out = told(command, "doctor", "--json")
    answer = json.loads(out.out)
    assert {line["status"] for line in answer["lines"]} <= {"ok", "note", "warning", "problem"}
    assert Machine.model_validate(answer["machine"])


def test_diagnose_names_the_cause_and_mends_a_script(command, tmp_path):
    log = tmp_path / "error.log"
    log.write_text("RuntimeError: CUDA error: invalid device ordinal\n", encoding="utf-8")
    code, out = told(command, "diagnose", str(log))
    assert (code, "FT421" in out.out) == (1, True)
    script = tmp_path / "train.py"
    script.write_text("args = TrainingArguments('out', evaluation_strategy='epoch')\n", encoding="utf-8")
    code, out = told(command, "diagnose", str(script), "--fix", str(tmp_path / "mended.py"))
    assert "eval_strategy='epoch'" in (tmp_path / "mended.py").read_text(encoding="utf-8")
    code, _out = told(command, "diagnose", str(script), "--fix", str(tmp_path / "mended.py"))
    assert code == 2, "an existing file is not overwritten"


def test_nothing_recognised_is_said(command, tmp_path):
    log = tmp_path / "odd.log"
    log.write_text("Something /home/wanglei/x happened\n", encoding="utf-8")
    code, out = told(command, "diagnose", str(log))
    assert code == 1
    assert "wanglei" not in out.out


def test_explain_prints_a_page_and_the_list(command):
    _code, out = told(command, "explain", "FT301")
    assert "FT301" in out.out
    for word in ("301", "ft301", "[FT301]", "FT 301"):
        assert told(command, "explain", word) == (0, out)
    _code, out = told(command, "explain", "--list")
    assert "FT801" in out.out


def test_diagnose_loads_no_torch(tmp_path):
    code = (
        "import sys, fitune.cli.diagnose as d\n"
        f"p = {str(tmp_path / 'a.log')!r}; open(p, 'w').write('loss: 0.3\\n')\n"
        "try: d.show_diagnosis(p, None, None, True)\nexcept SystemExit: pass\n"
        "print([m for m in ('torch', 'transformers') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().endswith("[]")
