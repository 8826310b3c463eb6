"""Mask what must not be pasted into a bug report: tokens, passwords, user names."""

import re

_SECRETS = (
    (re.compile(r"\bhf_[A-Za-z0-9]{8,}"), "hf_***"),
    (re.compile(r"\b(?:ghp|gho|ghs|github_pat)_[A-Za-z0-9_]{10,}"), "gh***"),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"), "sk-***"),
    (re.compile(r"\b(?:AKIA|LTAI)[A-Za-z0-9]{12,}"), "***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), r"\1 ***"),
    (
        re.compile(
            r"(?i)\b([a-z0-9_]*(?:token|secret|passw(?:or)?d|api_?key|access_?key))(\s*[=:]\s*)['\"]?[^\s'\",;&]{4,}['\"]?"
        ),
        r"\1\2***",
    ),
    (re.compile(r"([a-z][a-z0-9+.-]*://)[^/\s:@]+:[^/\s@]+@", re.I), r"\1***:***@"),
    (re.compile(r"([a-z][a-z0-9+.-]*://)[^/\s:@]+@", re.I), r"\1***@"),
)
_NAMES = (
    (re.compile(r"(/home/|/Users/|/data/home/)(?!USER\b)[^/\s'\":]+"), r"\1USER"),
    (re.compile(r"([A-Za-z]:\\+(?:Users|Documents and Settings)\\+)[^\\\s'\"]+"), r"\1USER"),
    (re.compile(r"([A-Za-z]:/Users/)[^/\s'\"]+"), r"\1USER"),
    (re.compile(r"(/mnt/[a-z]/Users/)[^/\s'\"]+"), r"\1USER"),
    (re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b"), "USER@HOST"),
)


def mask_secrets(text: str) -> str:
    """``text`` without tokens and passwords."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def mask(text: str) -> str:
    """``text`` without tokens, passwords, user names and mail addresses: fit for a bug report."""
    text = mask_secrets(text)
    for pattern, replacement in _NAMES:
        text = pattern.sub(replacement, text)
    return text
