"""Entities from classes of tokens: whatever a model says, they never overlap."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitune.data import split
from fitune.tasks import NerTask
from fitune.values import Example
from tests.data.small_encoders import HURTS, SMALL, texts

TASK = NerTask(("A", "B"), "softmax", 24)


def entities(rows: list[str], name: str, seed: int) -> list[Any]:
    windows = split([Example(row) for row in rows], SMALL[name], max_length=24)
    classes = np.random.default_rng(seed).integers(0, len(TASK.classes), len(windows.ids))
    data: Any = SimpleNamespace(examples=[Example(row) for row in rows], windows=windows)
    return TASK.predict(data, classes, None)


@pytest.mark.parametrize("name", SMALL)
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(texts.filter(bool), min_size=1, max_size=3), seed=st.integers(0, 2**16))
def test_entities_of_any_classes_lie_apart(name, rows, seed):
    for prediction in entities([*rows, *HURTS[:6]], name, seed):
        assert all(a.end <= b.start for a, b in pairwise(prediction.spans))
        assert all(0 <= span.start < span.end <= len(prediction.text) for span in prediction.spans)


def test_a_mark_that_is_a_token_has_a_label_of_its_own():
    windows = split([Example("e\u0301")], SMALL["wordpiece-marks"], max_length=24)
    of = {label: number for number, label in enumerate(TASK.classes)}
    data: Any = SimpleNamespace(examples=[Example("e\u0301")], windows=windows)
    assert len(windows.ids) == 4
    (prediction,) = TASK.predict(data, np.array([0, of["B-A"], of["B-B"], 0]), None)
    assert [(s.start, s.end, s.label) for s in prediction.spans] == [(0, 1, "A"), (1, 2, "B")]
