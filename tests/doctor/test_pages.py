"""Every code has a page in both languages, every page a rule; the words for people are complete."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import fitune
from fitune.doctor import all_rules, explain, rule_of
from fitune.doctor.pages import SECTIONS, parse_page
from fitune.values import Refusal

RULES = all_rules()


def test_codes_are_unique_and_in_the_agreed_ranges():
    codes = [rule.code for rule in RULES]
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch(r"FT[1-8]\d\d", code) for code in codes)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_page_has_all_sections_in_both_languages(rule):
    english, chinese = rule.page("en"), rule.page("zh")
    assert english.title
    assert not re.search(r"[\u4e00-\u9fff]", english.title)
    assert re.search(r"[\u4e00-\u9fff]", chinese.title)
    for page in (english, chinese):
        assert len(page.sections) == len(SECTIONS[page.language])
        assert page.fix
        assert "\n" not in page.fix
    assert english.sections[5].split() == chinese.sections[5].split(), "both pages name the same sources"


def test_explain_prints_the_page():
    assert explain("ft301", "en").startswith("# FT301 CUDA out of memory")
    assert "显存" in explain("FT301", "zh")


def test_an_unknown_code_is_refused():
    with pytest.raises(Refusal, match="FT999"):
        rule_of("FT999")


def test_a_page_without_a_section_is_an_error():
    with pytest.raises(ValueError, match="sections"):
        parse_page("FT000", "title\n\n## Why\n\nbecause", "en")


def test_severities_are_known():
    assert {rule.severity for rule in RULES} <= {"error", "warning", "note"}


SOURCE = Path(fitune.__file__).parent
CODE = re.compile(r"""["'](FT\d{3})["']""")


def test_every_code_that_the_house_raises_has_a_page():
    known = {rule.code for rule in RULES}
    missing = {
        f"{path.relative_to(SOURCE)}: {code}"
        for path in SOURCE.rglob("*.py")
        for code in CODE.findall(path.read_text(encoding="utf-8"))
        if code not in known
    }
    assert not missing


def test_every_page_is_of_a_rule_or_of_a_code_that_is_raised():
    raised = {
        code
        for path in SOURCE.rglob("*.py")
        if path.parent.name != "rules"
        for code in CODE.findall(path.read_text(encoding="utf-8"))
    }
    idle = [
        rule.code
        for rule in RULES
        if rule.code not in raised and not any(hasattr(rule.module, f) for f in ("read", "examine", "watch", "check"))
    ]
    assert idle == []


def test_no_chinese_page_is_left_over():
    names = {rule.name for rule in RULES}
    pages = {path.name.removesuffix(".zh.md") for path in (SOURCE / "doctor" / "rules").glob("*.zh.md")}
    assert pages == names


def test_the_pages_of_the_docs_are_fresh():
    script = SOURCE.parent.parent / "scripts" / "findings.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
