"""Exact knobs that are tried when one window alone does not fit, and the finding when none is left."""

from __future__ import annotations

from typing import Protocol

from fitune.messages import _
from fitune.microbatch.oom import OutOfMemory
from fitune.values import Finding, Fix, Refusal


class Knob(Protocol):
    """A change of the memory choice that leaves what is learned as it is (Fidelity.EXACT)."""

    @property
    def name(self) -> str:
        """A field of Fit, such as ``checkpoint_every`` or ``attention``."""
        ...

    def turn(self) -> bool:
        """Turn it; False when it is turned already or cannot be."""
        ...


class DoesNotFit(Refusal):
    """Out of memory where nothing can be divided any more. Model, optimizer and generators are as before the step."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        fixes = "\n".join(fix.text for fix in finding.fixes)
        super().__init__("\n".join((finding.title, *finding.evidence, finding.why)), next_step=fixes, code=finding.code)


def window_does_not_fit(tokens: int, largest_good_tokens: int, failure: OutOfMemory, knobs: list[str]) -> DoesNotFit:
    """FT301. ``largest_good_tokens``: longest window that has gone through in this run; 0: none has."""
    evidence = [failure.text.splitlines()[0]]
    if knobs:
        evidence.append(_("already tried: {knobs}", knobs=", ".join(knobs)))
    if largest_good_tokens:
        evidence.append(_("windows of up to {tokens} tokens have fitted in this run", tokens=largest_good_tokens))
    shorter = largest_good_tokens or max(8, tokens // 2)
    return DoesNotFit(
        Finding(
            code="FT301",
            severity="error",
            title=_("One window of {tokens} tokens alone does not fit into memory", tokens=tokens),
            evidence=tuple(evidence),
            why=_("A forward pass holds at least one window; every exact way to save memory has been used."),
            fixes=(
                Fix(
                    safety="unsafe",
                    text=_("Cut texts into shorter windows: --max-length {tokens}", tokens=shorter),
                    settings={"max_length": shorter},
                ),
                Fix(
                    safety="unsafe",
                    text=_("Train in half precision or with LoRA (changes rounding, or what is learned)"),
                    settings={"lora_rank": 8},
                ),
                Fix(
                    safety="display",
                    text=_("Free the card: fitune doctor shows which processes use it"),
                    command="fitune doctor",
                ),
            ),
        )
    )


def optimizer_does_not_fit(failure: OutOfMemory) -> DoesNotFit:
    """FT302: the optimizer's state or its temporaries do not fit beside the weights and gradients."""
    return DoesNotFit(
        Finding(
            code="FT302",
            severity="error",
            title=_("The optimizer does not fit into memory beside weights and gradients"),
            evidence=(failure.text.splitlines()[0],),
            why=_("Its state is as large for any micro-batch: smaller passes do not help."),
            fixes=(
                Fix(
                    safety="unsafe",
                    text=_("Use 8-bit optimizer state, or LoRA (changes rounding, or what is learned)"),
                    settings={"optimizer": "adamw_8bit"},
                ),
                Fix(
                    safety="display",
                    text=_("Free the card: fitune doctor shows which processes use it"),
                    command="fitune doctor",
                ),
            ),
        )
    )
