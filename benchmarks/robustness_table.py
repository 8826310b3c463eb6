"""The table of benchmarks/robustness.py, from its figures."""

from __future__ import annotations

from typing import Any

LABELS = {"stock": "transformers.Trainer", "fitune.Trainer": "fitune.Trainer", "fitune train": "`fitune train`"}


def table(results: list[dict[str, Any]]) -> str:
    """One Markdown section a set of figures: one column a way to train."""
    head = (
        "# Where trainings go wrong: the stock Trainer beside fitune\n\n"
        "Made by `benchmarks/robustness.py`; what is measured and how stands there. Small BERTs on a CPU, seed 0. "
        "Each row states what was seen, on one machine; later versions may do better.\n\n"
        "Repeat: `python benchmarks/robustness.py --json now.json --kills 6`, then "
        "`python benchmarks/robustness.py --table benchmarks/robustness.md now.json`.\n"
    )
    return head + "".join(_section(result) for result in results)


def _section(result: dict[str, Any]) -> str:
    names = [name for name in LABELS if name in result]
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    lines = [f"\n## transformers {result['versions']['transformers']}\n", f"{result['date']}; {versions}.\n"]
    lines.append("| | " + " | ".join(LABELS[name] for name in names) + " |")
    lines.append("|---" * (len(names) + 1) + "|")
    rows = (
        ("gradient of a step cut in 2 / 4 / 8, model's own loss: relative difference to the uncut one", _accumulation),
        ("the same with a `compute_loss_func` that divides by `num_items_in_batch`", _own_loss),
        ("out-of-memory once, in step 6 of 16", lambda part: _memory(part, "once")),
        ("out-of-memory in every pass of more than 4 rows, from step 6 on", lambda part: _memory(part, "above")),
        ("the same with `auto_find_batch_size=True`, batch size 8", lambda part: _memory(part, "automatic")),
        ("stopped after step 5 of 16, within an epoch, dropout on; gone on", _resume),
        ("kill -9 during the second save, then the same again", _kill),
    )
    for title, cell in rows:
        lines.append(f"| {title} | " + " | ".join(cell(result[name]) for name in names) + " |")
    return "\n".join(lines) + "\n"


def _accumulation(part: dict[str, Any]) -> str:
    if "accumulation_weights" in part:
        return "trained weights differ by at most " + _three(part["accumulation_weights"])
    return _three(part["accumulation"])


def _own_loss(part: dict[str, Any]) -> str:
    return _three(part["accumulation_own_loss"]) if "accumulation_own_loss" in part else "not needed"


def _three(figures: dict[str, float]) -> str:
    return " / ".join(f"{figures[k]:.2g}" for k in ("2", "4", "8"))


def _memory(part: dict[str, Any], name: str) -> str:
    if name not in part:
        return "as fitune.Trainer, whose step it runs"
    found = part[name]
    starts, planned = found["steps"], found["planned_steps"]
    if found["ends"] == "crashes":
        return f"crashes; the {starts[-1]} steps done are lost unless they were saved"
    if len(starts) == 1:
        return f"completes {starts[0]} steps; weights differ from an undisturbed run's by {found['difference']:.1g}"
    kept = (
        "from the initial weights" if all(found["begins_again_with_initial_weights"]) else "keeping the weights so far"
    )
    return (
        f"begins again at step 0 {len(starts) - 1} times, {kept}; ends with batch size "
        f"{found['batch_size_at_the_end']} and a schedule of {planned[-1]} steps instead of {planned[0]}; "
        f"weights differ by {found['difference']:.1g}"
    )


def _resume(part: dict[str, Any]) -> str:
    return "same bits as undisturbed" if part["resume"]["same_bits"] else "other bits than undisturbed"


def _kill(part: dict[str, Any]) -> str:
    found = part["kill"]
    cells = [f"{count} of {found['kills']}: {outcome}" for outcome, count in sorted(found["outcomes"].items())]
    errors = sorted({error.split(":")[0] for error in found["errors"]})
    return "; ".join(cells) + (f" ({', '.join(errors)})" if errors else "")
