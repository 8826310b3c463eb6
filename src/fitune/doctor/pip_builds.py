"""Builds such as torch 2.1.0+cu118, which PyTorch's own index alone carries."""

from __future__ import annotations

import re

from fitune.doctor.log import Hit, Log

_BUILD = (
    r"(?:satisfies the requirement|No matching distribution found for|there is no version of"
    r"|installation candidates for) (torch\w*)(?:==| \()([\d.]+)\+((?:cu|rocm)[\d.]+|cpu)"
)


def builds_not_on_index(log: Log) -> list[Hit]:
    """Failed installs of a build where the plain version would be found; match groups: package, version, build.

    Empty where PyTorch's index was asked, or where the listed versions show that this Python is too old or too new.
    """
    hits = log.find(_BUILD)
    if not hits or log.has(r"Looking in (?:indexes|links): .*pytorch\.org"):
        return []
    listed = [
        _numbers(one) for one in re.findall(r"from versions: ([\d., \w+]+)\)", log.text) for one in one.split(",")
    ]
    wanted = _numbers(hits[0].match[2])
    return hits if not listed or min(listed) <= wanted <= max(listed) else []


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version.split("+")[0])))
