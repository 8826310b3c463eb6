"""The model card: a README.md with the metadata that the Hugging Face hub reads, made of what was measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fitune.runs import Evaluation, Run
from fitune.tasks import ModelSettings, read_settings

if TYPE_CHECKING:
    from fitune.predicting.export import Comparison

__all__ = ["write_card"]


def write_card(folder: Path, model: Path, comparisons: Sequence[Comparison] = ()) -> Path:
    """Write ``folder/README.md`` for the model that was trained as ``model``; the run beside it gives the figures."""
    settings = read_settings(folder)
    run = Run.open(model.parent) if (model.parent / "events.jsonl").is_file() else None
    evaluation = run.evaluation if run is not None else None
    parts = [_metadata(settings, evaluation), f"# {model.parent.name}\n", _about(settings)]
    if run is not None:
        parts.append(_settings(run))
    if evaluation is not None:
        parts += [_data(evaluation), _scores(evaluation), _measured(evaluation)]
    if comparisons:
        parts.append(_comparisons(comparisons))
    parts += [_loading(settings, comparisons), _limits(settings)]
    path = folder / "README.md"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


def _metadata(settings: ModelSettings, evaluation: Evaluation | None) -> str:
    """YAML, spelled as JSON values, so that any label or name is quoted rightly."""
    pipeline = "token-classification" if settings.task == "ner" else "text-classification"
    lines = ["---", "language: zh", "library_name: transformers", f"pipeline_tag: {pipeline}", "tags: [fitune]"]
    if settings.base_model and "/" not in settings.base_model.strip("/") and settings.base_model != "embedded":
        lines.append(f"base_model: {json.dumps(settings.base_model)}")
    if evaluation is not None:
        lines.append(f"metrics: {json.dumps(sorted(next(iter(evaluation.splits.values())).metrics))}")
    return "\n".join([*lines, "---", ""])


def _about(settings: ModelSettings) -> str:
    what = "Named-entity recognition" if settings.task == "ner" else "Text classification"
    if settings.multi_label:
        what += " (several labels a text)"
    labels = ", ".join(f"`{label}`" for label in settings.labels)
    return f"{what}, fine-tuned from `{settings.base_model}` with fitune.\n\nLabels: {labels}.\n"


def _settings(run: Run) -> str:
    lines = run.job_path.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.strip() and not line.startswith("#")]
    return "## Settings\n\n```toml\n" + "\n".join(kept) + "\n```\n"


def _data(evaluation: Evaluation) -> str:
    rows = [f"| {d.split} | `{Path(d.path).name}` | {d.rows} | `{d.sha256[:16]}` |" for d in evaluation.data]
    return "\n".join(["## Data", "", "| split | file | rows | SHA-256 |", "|---|---|---|---|", *rows, ""])


def _scores(evaluation: Evaluation) -> str:
    parts = ["## Scores", ""]
    for name, split in evaluation.splits.items():
        parts += [f"### {name} ({split.rows} rows)", ""]
        parts += ["| " + " | ".join(split.metrics) + " |", "|" + "---|" * len(split.metrics)]
        parts += ["| " + " | ".join(f"{value:.4f}" for value in split.metrics.values()) + " |", ""]
        if split.rows_seen:
            parts += [f"{split.rows_seen} of these rows are also in the training data.", ""]
        parts += ["| label | precision | recall | f1 | gold |", "|---|---|---|---|---|"]
        parts += [
            f"| `{row.label}` | {row.precision:.4f} | {row.recall:.4f} | {row.f1:.4f} | {row.gold} |"
            for row in split.per_label
        ]
        parts.append("")
    if evaluation.task == "ner":
        parts += ["Entity scores are strict: an entity counts when both ends and the type are right.", ""]
    return "\n".join(parts)


def _measured(evaluation: Evaluation) -> str:
    lines = ["## Measured", "", f"Device {evaluation.device}, precision {evaluation.precision}."]
    if evaluation.measured_seconds is not None:
        lines.append(f"Training and evaluation took {evaluation.measured_seconds:.0f} s.")
    if evaluation.measured_peak_bytes is not None:
        lines.append(f"Peak memory of the device: {evaluation.measured_peak_bytes / 2**30:.2f} GiB.")
    if evaluation.parameters is not None:
        lines.append(f"{evaluation.parameters / 1e6:.1f} million parameters.")
    return "\n".join([*lines, ""])


def _comparisons(comparisons: Sequence[Comparison]) -> str:
    head = [
        "## Checked against the trained model",
        "",
        "| engine | rows | other predictions | logits differ by | score |",
    ]
    rows = [
        f"| {c.engine} | {c.rows} | {c.rows_with_other_predictions} | {c.largest_logit_difference:.2g} | "
        f"{c.metric} {c.exported_score:.4f} (trained model {c.torch_score:.4f}) |"
        for c in comparisons
    ]
    return "\n".join([*head, "|---|---|---|---|---|", *rows, ""])


def _loading(settings: ModelSettings, comparisons: Sequence[Comparison]) -> str:
    kind = "AutoModelForTokenClassification" if settings.task == "ner" else "AutoModelForSequenceClassification"
    lines = [
        "## How to load",
        "",
        "```python",
        "from fitune import Predictor",
        "",
        'Predictor("this-folder")("文本")',
        "```",
        "",
    ]
    if any(comparison.engine == "onnx" for comparison in comparisons):
        lines += ["Without torch: `python example.py 文本` (needs onnxruntime, tokenizers, numpy, safetensors).", ""]
    elif not comparisons:
        lines += ["```python", f"from transformers import {kind}, AutoTokenizer", "",
                  f'model = {kind}.from_pretrained("this-folder")',
                  'tokenizer = AutoTokenizer.from_pretrained("this-folder")', "```", ""]  # fmt: skip
        if settings.head == "crf":
            lines += [
                "Plain transformers gives the best class of each token, without the CRF that was trained with it "
                "(`crf.safetensors`), and that scores clearly lower than the figures of this card: use "
                "`fitune.Predictor`, `fitune serve` or the `example.py` of `fitune export`; for plain Hugging Face "
                'code train with `head = "softmax"`.',
                "",
            ]
    return "\n".join(lines)


def _limits(settings: ModelSettings) -> str:
    return "\n".join(
        [
            "## Limits",
            "",
            f"The model sees windows of {settings.max_length} tokens; fitune splits longer texts and merges what is "
            "found. The scores hold for texts like those of the data above and say nothing about others.",
            "",
        ]
    )
