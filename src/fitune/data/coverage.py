"""Coverage: the proof, counted character by character, that windows hold everything that was labelled."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fitune.data.alignment import covered_characters
from fitune.data.windows import SPECIAL, Windows
from fitune.values import Example


@dataclass(frozen=True)
class Coverage:
    """Characters of the examples, and what became of them."""

    characters: int
    in_windows: int
    """Inside a token of at least one window."""
    dropped: int
    """Dropped by the tokenizer, each listed in Windows."""
    labelled: int
    """Characters of gold spans; of the whole text where there are no spans."""
    labelled_dropped: int
    """Of those, dropped by the tokenizer."""
    labelled_in_windows: int

    @property
    def share(self) -> float:
        """Of the labelled characters that the tokenizer keeps, the share inside a window. Less than 1.0 is a bug."""
        kept = self.labelled - self.labelled_dropped
        return self.labelled_in_windows / kept if kept else 1.0


def coverage(windows: Windows, examples: Sequence[Example]) -> Coverage:
    """Count, character by character, what the windows hold of ``examples`` (those that ``split`` was given)."""
    texts = np.array([len(example.text) for example in examples], np.int64)
    sizes = texts + np.array([len(example.text_pair or "") for example in examples], np.int64)
    char_bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    example_of_token = np.repeat(windows.example, np.diff(windows.bounds))
    real = windows.starts != SPECIAL
    base = char_bounds[:-1][example_of_token] + windows.segments * texts[example_of_token]
    total = int(char_bounds[-1])
    inside = covered_characters(windows.starts[real] + base[real], windows.ends[real] + base[real], total)
    dropped = np.zeros(total, np.bool_)
    dropped[windows.dropped_position + char_bounds[windows.dropped_example]] = True
    labelled = np.zeros(total, np.bool_)
    for example, begin, size in zip(examples, char_bounds.tolist(), sizes.tolist(), strict=False):
        if example.spans is None:
            labelled[begin : begin + size] = True
        for span in example.spans or ():
            labelled[begin + span.start : begin + span.end] = True
    return Coverage(
        characters=total,
        in_windows=int(inside.sum()),
        dropped=int(dropped.sum()),
        labelled=int(labelled.sum()),
        labelled_dropped=int((labelled & dropped).sum()),
        labelled_in_windows=int((labelled & inside & ~dropped).sum()),
    )
