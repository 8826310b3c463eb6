"""The worst errors of an evaluation: kept in order, whatever ties there are."""

import numpy as np

from fitune.runs import WORST_ERRORS
from fitune.tasks import NerTask, Scored, Tally
from fitune.values import Example, Prediction, Span


def test_many_equal_errors_are_kept_in_the_order_they_came() -> None:
    """The same text again and again has the same loss: nothing but the order tells such errors apart."""
    task = NerTask(("x",))
    rows = 3 * WORST_ERRORS
    examples = [Example(f"文{row}", spans=(Span(0, 1, "x"),)) for row in range(rows)]
    missed = [Prediction(example.text, spans=()) for example in examples]
    losses = np.where(np.arange(rows) % 50 == 7, 2.0, 1.0)
    tally = Tally(task, task.new_metrics(), keep_errors=True)
    for first in (0, rows // 2):
        part = slice(first, first + rows // 2)
        tally.update(examples[part], Scored(missed[part], losses[part], None))
    kept = tally.split_evaluation(1.0)
    assert kept.errors_total == rows
    worst = [int(case.text[1:]) for case in kept.errors]
    heavy = [row for row in range(rows) if row % 50 == 7]
    light = [row for row in range(rows) if row % 50 != 7]
    assert worst == (heavy + light)[:WORST_ERRORS]
