"""Job: what to learn. Hardware-free; the contents of ``job.toml``."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, field_validator

from fitune.values.base import Value


class Job(Value):
    """Every learning choice of a run, and nothing about memory.

    ``None`` in a field means "fitune chooses by the documented rule"; the run's job.toml records what was chosen.
    """

    # true is no 1, and "yes" is no true: what was meant by them is anybody's guess.
    model_config = ConfigDict(strict=True)

    train: str
    """Training file, in any readable format."""
    dev: str | None = None
    """Development file; without one a stratified, duplicate-free share of ``train`` is split off and kept."""
    test: str | None = None
    """Test file, scored once with the best model after training."""
    task: Literal["ner", "classification"] | None = None
    """Recognised from the file when not given."""
    model: str = "bert-base-chinese"
    """A folder, a hub name, or ``embedded`` (a real pretrained encoder that needs no hub)."""
    format: str | None = None
    """Overrules the recognised file format."""
    text_column: str | None = None
    """Overrules the recognised text column."""
    text_pair_column: str | None = None
    """Overrules the recognised second text column."""
    label_column: str | None = None
    """Overrules the recognised label column."""
    multi_label: bool | None = None
    """Several labels per text; recognised from the file when not given."""
    dev_fraction: float = Field(default=0.1, gt=0, lt=1)
    """Share of the training rows that becomes the development set when no file is given."""

    head: Literal["softmax", "crf"] | None = None
    """Decoder of named-entity recognition."""
    max_length: int | None = Field(default=None, ge=8)
    """Window in tokens, special tokens included; longer texts are split into overlapping windows, never truncated."""
    batch_size: int = Field(default=16, ge=1)
    """Examples per optimizer step."""
    epochs: float | None = Field(default=None, gt=0)
    """Passes over the training rows, at most; early stopping may end sooner."""
    learning_rate: float | None = Field(default=None, gt=0)
    """Peak rate of the encoder."""
    head_learning_rate: float | None = Field(default=None, gt=0)
    """Peak rate of the new head."""
    weight_decay: float = Field(default=0.01, ge=0)
    """AdamW's decay; never applied to biases and LayerNorm."""
    warmup_fraction: float = Field(default=0.1, ge=0, lt=1)
    """Share of the steps in which the rate rises linearly; it then falls linearly to zero."""
    max_grad_norm: float = Field(default=1.0, ge=0)
    """Gradients are clipped to this norm; 0 switches clipping off."""
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """Share of the target probability spread over all classes."""
    class_weights: Literal["balanced"] | dict[str, Annotated[float, Field(gt=0)]] | None = None
    """Weight of each class in the loss."""
    patience: int = Field(default=2, ge=0)
    """Stop after this many evaluations without improvement; 0 switches early stopping off."""
    metric: str | None = None
    """Metric that picks the best model; its name is checked before step 1."""
    normalize_quotes: bool = False
    """Map curly quotes, dashes and ellipses to characters that the vocabulary has (same length, offsets kept)."""
    lowercase: bool | None = None
    """Lower-case the input; by default exactly when the vocabulary has no capitals."""
    seed: int = Field(default=42, ge=0, lt=2**32)
    """Seeds initial weights, dropout, split and data order."""

    @field_validator("train", "dev", "test", "model")
    @classmethod
    def _not_empty(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("must not be empty")
        return value
