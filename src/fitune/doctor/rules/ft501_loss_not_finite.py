"""The loss is not a number

## What it says

`'loss': nan`, `loss=inf`, or a loss of 0.0 beside a gradient norm of nan.

## Why

A learning rate too high, fp16 that overflows, weights loaded in fp16, a batch without any label (every label
-100), or a division by zero in an own loss.

## How to know

The first line with nan tells the step; the batch of that step is the suspect.

## How to fix

Lower the learning rate (2e-5 to 5e-5 for BERT), use bf16 or fp32, and drop rows in which every label is -100;
fitune stops at the first such batch, names it and goes on in fp32 from the last good step.

## How safe

A change of precision is rounding; a change of the learning rate is a learning choice.

## Sources

huggingface/transformers#9160 ; #11327
"""

from collections.abc import Iterator

from fitune.doctor.history import History
from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PERSISTS = True

NAN = (
    r"(?:^|[^\w])['\"]?(?:train_|eval_|dev_|val_|valid_|avg_"
    r"|total_)?loss['\"]?\s*[:=]\s*['\"]?(?:tensor\()?-?(?:nan|inf(?:inity)?)\b"
    r"|\b(?:loss|损失)\s+(?:is\s+)?(?:nan|inf)\b(?=\s|,|$)|损失\s*[:：=]\s*(?:nan|inf)"
)
OTHER = (
    r"probability tensor contains either|found (?:inf|nan) in (?:the )?loss|Loss is (?:inf|infinite"
    r"|NaN)"
    r"|"
    r"Function '\w+' returned nan values|Loss is nan|loss (?:became|is) (?:nan|not finite"
    r"|non-?finite)|Input contains NaN|non-?finite loss"
    r"|Minimum loss scale reached|reducing loss scale to (?:0\.0+\b(?!\d)|\d\.\d+e-[1-9]\d)"
)
SILENT = r"['\"]loss['\"]: ['\"]?0(?:\.0+)?['\"]?,.*['\"]grad_norm['\"]: ['\"]?nan"


def read(log: Log) -> Iterator[Symptom]:
    """A logged loss of nan or inf; a gradient norm alone is the loss scaler finding its scale."""
    if hits := log.find(NAN, OTHER):
        yield symptom(hits, confidence=0.95)
    elif hits := log.find(SILENT):
        yield symptom(hits, confidence=0.93)


def watch(history: History) -> Iterator[Symptom]:
    """A step, or an evaluation, whose loss is not finite."""
    for reading in [*history.losses, *history.evaluation_losses]:
        if not reading.finite:
            yield Symptom(evidence=(reading.evidence,), line=reading.line)
            return
