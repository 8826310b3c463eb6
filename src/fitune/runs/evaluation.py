"""``evaluation.json``: all that a report shows beyond the job, the events and the plan.

Whoever trains writes it (``Run.write_evaluation``), the report and the model card read it. Scores are fractions in
[0, 1]; spans are characters ``[start, end)`` of the text beside them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fitune.values import Finding, Span

WORST_ERRORS = 50
"""How many errors of a split are kept."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LabelScores(_Record):
    """One row of the per-type table."""

    label: str
    precision: float = Field(ge=0, le=1)
    recall: float = Field(ge=0, le=1)
    f1: float = Field(ge=0, le=1)
    gold: int = Field(ge=0)
    """How often the label stands in the gold: entities or examples."""
    predicted: int = Field(ge=0)
    """How often the model gave it."""
    correct: int = Field(ge=0)


class Confusion(_Record):
    """``counts[i][j]``: gold ``labels[i]``, predicted ``labels[j]``.

    For entities the unit is the exact span, and the last label is ``""``: nothing there (missed or invented).
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    @model_validator(mode="after")
    def _square(self) -> Confusion:
        if len(self.counts) != len(self.labels) or any(len(row) != len(self.labels) for row in self.counts):
            raise ValueError(f"counts must be {len(self.labels)} x {len(self.labels)}")
        return self


class ErrorCase(_Record):
    """One example on which the model is wrong, whole."""

    text: str
    text_pair: str | None = None
    gold_spans: tuple[Span, ...] = ()
    predicted_spans: tuple[Span, ...] = ()
    gold_labels: tuple[str, ...] = ()
    predicted_labels: tuple[str, ...] = ()
    source: str = ""
    """``file:line``."""
    loss: float | None = None
    """By which errors are ranked, worst first; None: not known."""


class SplitEvaluation(_Record):
    """The scores of one split, with the model that was kept."""

    rows: int = Field(ge=0)
    metrics: dict[str, float]
    """Such as f1, precision, recall, macro_f1, accuracy, loss."""
    metrics_without_seen: dict[str, float] | None = None
    """The same without the rows whose text also stands in the training rows; None: there are no such rows."""
    rows_seen: int = Field(default=0, ge=0)
    """Rows whose text also stands in the training rows."""
    per_label: tuple[LabelScores, ...] = ()
    confusion: Confusion | None = None
    errors: tuple[ErrorCase, ...] = Field(default=(), max_length=WORST_ERRORS)
    """The worst ones, worst first."""
    errors_total: int = Field(default=0, ge=0)
    """Examples on which the model is wrong, in all."""
    coverage: float | None = Field(default=None, ge=0, le=1)
    """Share of the labelled characters that some window shows to the model."""


class Histogram(_Record):
    """``counts[i]`` values lie in ``[edges[i], edges[i + 1])``; the last bin includes its end."""

    edges: tuple[int, ...]
    counts: tuple[int, ...]

    @model_validator(mode="after")
    def _one_more_edge(self) -> Histogram:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError("edges must be one more than counts")
        return self


class DataFile(_Record):
    """What one split was read from."""

    split: Literal["train", "dev", "test"]
    path: str
    rows: int = Field(ge=0)
    sha256: str
    format: str = ""
    encoding: str = ""
    split_off: bool = False
    """These rows were split off from the training file."""
    note: str = ""
    """Anything else, shown as it is."""


class Evaluation(_Record):
    """All that the report shows beyond job, events and plan."""

    task: Literal["ner", "classification"]
    multi_label: bool = False
    labels: tuple[str, ...]
    metric: str
    """Name of the metric that picked the model."""
    best_step: int | None = None
    """Step whose weights were kept."""
    splits: dict[str, SplitEvaluation]
    """"dev" and "test", as far as they exist."""
    baseline: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Split -> metrics of the linear model, where it was run."""
    data: tuple[DataFile, ...] = ()
    findings: tuple[Finding, ...] = ()
    """What the check of the data noticed."""
    lengths_tokens: Histogram | None = None
    """Lengths of the training texts in tokens, before they are cut into windows."""
    thresholds: dict[str, float] = Field(default_factory=dict)
    """Multi-label: label -> least probability at which it is given, tuned on dev."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Package -> version, with "python" and "fitune"."""
    device: str = ""
    precision: str = ""
    parameters: int | None = Field(default=None, ge=0)
    """Of the trained model."""
    measured_seconds: float | None = Field(default=None, ge=0)
    """Training, evaluations included."""
    measured_peak_bytes: int | None = Field(default=None, ge=0)
    """Most bytes that PyTorch's allocator held at once (``torch.cuda.max_memory_reserved``), which leaves out what the
    driver takes for the process (the context); None where nobody measured."""
