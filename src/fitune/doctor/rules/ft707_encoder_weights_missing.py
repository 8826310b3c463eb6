"""Weights of the encoder itself were not loaded

## What it says

`newly initialized` or `not used` names encoder layers or embeddings (`bert.encoder.layer.0...`,
`embeddings.word_embeddings.weight`).

## Why

The checkpoint belongs to another architecture, or its names carry another prefix (`model.bert.`, `module.`);
the encoder then starts from random numbers and learns next to nothing.

## How to know

The list in the message.

## How to fix

Load with the class that fits (`config.json`, field `model_type`), save with `save_pretrained` instead of
`torch.save(model.state_dict())`, or strip the prefix from the names.

## How safe

Training on without it is not worth the time.

## Sources

huggingface/transformers#5421 ; asappresearch/structshot#3
"""

from collections.abc import Iterator

from fitune.doctor.load_report import find_load_report
from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
PERSISTS = True


def read(log: Log) -> Iterator[Symptom]:
    """Loading reports that name encoder weights."""
    if hits := log.find(r"(?:Missing|Unexpected) key\(s\) in state_dict"):
        text = _(
            "save model.module.state_dict(), or take the prefix module. off the names of the file; and build the model "
            "with the class it was saved from"
        )
        title = _("The names of the weights differ between the file and the model")
        fix = Fix(safety="safe", text=text)
        yield symptom(hits, confidence=0.6 if log.has(r"size mismatch for") else 0.95, title=title, fixes=(fix,))
        return
    report = find_load_report(log)
    if report is not None and report.encoder_names:
        named = ", ".join(report.encoder_names[:3])
        yield symptom(
            report.hits, confidence=0.96, title=_("Encoder weights were not loaded: {names} ...", names=named)
        )
