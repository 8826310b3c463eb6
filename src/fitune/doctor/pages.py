"""The page of a finding: in English the docstring of its rule, in Chinese the file beside it. One text for all uses."""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import ModuleType
from typing import Literal, cast

from fitune.doctor import rules
from fitune.doctor.symptom import Severity
from fitune.messages import _, language
from fitune.values import Refusal

Language = Literal["en", "zh"]
SECTIONS: dict[Language, tuple[str, ...]] = {
    "en": ("What it says", "Why", "How to know", "How to fix", "How safe", "Sources"),
    "zh": ("它说什么", "为什么", "怎么确认", "怎么修", "是否安全", "出处"),
}


@dataclass(frozen=True)
class Page:
    """One finding's page in one language; sections in the order of SECTIONS."""

    code: str
    title: str
    sections: tuple[str, ...]
    language: Language

    @property
    def why(self) -> str:
        """The section "Why"."""
        return self.sections[1]

    @property
    def fix(self) -> str:
        """The first paragraph of "How to fix", on one line."""
        return " ".join(self.sections[3].split("\n\n")[0].split())

    def markdown(self) -> str:
        """The whole page."""
        body = "\n\n".join(
            f"## {name}\n\n{text}" for name, text in zip(SECTIONS[self.language], self.sections, strict=True)
        )
        return f"# {self.code} {self.title}\n\n{body}\n"


@dataclass(frozen=True)
class Rule:
    """One symptom: a module of ``doctor/rules`` and its pages."""

    code: str
    name: str
    severity: Severity
    module: ModuleType

    def page(self, wanted: Language | None = None) -> Page:
        """The page, in the reader's language unless another is wanted."""
        return _page(self.name, wanted or language())


def parse_page(code: str, text: str, in_language: Language) -> Page:
    """A page's text as a title and its sections; ValueError when a section is missing or strange."""
    title, *rest = re.split(r"^## +(.+)$", text.strip(), flags=re.MULTILINE)
    names, bodies = tuple(name.strip() for name in rest[::2]), tuple(body.strip() for body in rest[1::2])
    if names != SECTIONS[in_language] or not all(bodies):
        raise ValueError(f"{code}: sections {names} should be {SECTIONS[in_language]}, none empty")
    return Page(code, title.strip().removeprefix("# ").strip(), bodies, in_language)


@cache
def _page(name: str, in_language: Language) -> Page:
    code = name.split("_")[0].upper()
    if in_language == "zh":
        text = (resources.files("fitune.doctor.rules") / f"{name}.zh.md").read_text(encoding="utf-8")
    else:
        text = importlib.import_module(f"fitune.doctor.rules.{name}").__doc__ or ""
    return parse_page(code, text, in_language)


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by code."""
    found: list[Rule] = []
    for info in pkgutil.iter_modules(rules.__path__):
        if re.fullmatch(r"ft\d{3}_\w+", info.name):
            module = importlib.import_module(f"fitune.doctor.rules.{info.name}")
            found.append(Rule(info.name.split("_")[0].upper(), info.name, cast(Severity, module.SEVERITY), module))
    return tuple(sorted(found, key=lambda rule: rule.code))


def rule_of(code: str) -> Rule:
    """The rule with that code (any case); Refusal when there is none."""
    wanted = code.upper()
    for rule in all_rules():
        if rule.code == wanted:
            return rule
    raise Refusal(_("there is no finding {code}", code=code), next_step=_("fitune explain --list shows every code"))


def explain(code: str, wanted: Language | None = None) -> str:
    """The page of one finding as Markdown."""
    return rule_of(code).page(wanted).markdown()
