"""Planning in a child process: what the simulator does to PyTorch, takes or breaks never reaches the user's process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fitune.catalog import card_of, cards
from fitune.catalog import offers as known_offers
from fitune.messages import _, language, set_language
from fitune.values import Card, Fit, Job, Offer, Plan, Refusal

if TYPE_CHECKING:
    from fitune.planning.outcome import Allow, Explanation, Planning
    from fitune.planning.past import Correction

TIME_LIMIT_SECONDS = 1800
# Without the working directory on the path: a user's own torch.py there must not be taken for torch.
_CHILD = "import sys; sys.path[:] = [p for p in sys.path if p]; from fitune.planning.child import main; main()"


def plan(
    job: Job,
    card: Card | str,
    *,
    allow: Allow = "rounding",
    offers: Iterable[Offer] | None = None,
    corrections: Mapping[str, Correction] | None = None,
) -> Plan:
    """The fastest Fit of ``job`` that fits ``card``, with its estimate and what was rejected.

    Args:
        card: a Card, or an id of the catalogue.
        allow: "exact" keeps fp32; "rounding" (default) takes the precision that training would and 8-bit state where
            it must; "different" lets layers be frozen for speed. Without a Fit of those allowed, freezing is the last
            resort, and the plan's fidelity says so.

    Raises:
        Refusal: nothing fits (FT353), the data cannot be read, the model or card is not known.
    """
    wanted = card_of(card) if isinstance(card, str) else card
    planning = plan_all(job, cards=[wanted], allow=allow, offers=offers, corrections=corrections)
    if planning.plans:
        return planning.plans[0]
    raise nothing_fits(wanted, planning)


def nothing_fits(card: Card, planning: Planning) -> Refusal:
    reasons = [rejected.reason for unfit in planning.unfit for rejected in unfit.rejected]
    return Refusal(
        _("nothing fits: even the leanest setting {reason}", reason=reasons[-1] if reasons else ""),
        where=card.name,
        next_step=_("Choose a smaller model, a shorter max_length, or another card: fitune plan FILE"),
        code="FT353",
    )


def plan_all(
    job: Job,
    *,
    cards: Iterable[Card] | None = None,
    allow: Allow = "rounding",
    offers: Iterable[Offer] | None = None,
    corrections: Mapping[str, Correction] | None = None,
) -> Planning:
    """Plans of ``job`` for every card of the catalogue (or ``cards``): ``.plans``, cheapest first, and ``.unfit``."""
    from fitune.planning.outcome import Planning

    return Planning.model_validate(_ask(_request("plan", job, cards, allow, offers, corrections)))


def explain(
    job: Job,
    card: Card | str,
    *,
    allow: Allow = "rounding",
    offers: Iterable[Offer] | None = None,
    corrections: Mapping[str, Correction] | None = None,
) -> Explanation:
    """The plan of one card with a picture of its memory, the largest tensors, and the change that makes it fit."""
    from fitune.planning.outcome import Explanation

    wanted = card_of(card) if isinstance(card, str) else card
    return Explanation.model_validate(_ask(_request("explain", job, [wanted], allow, offers, corrections)))


def estimate(job: Job, card: Card | str, fit: Fit, *, corrections: Mapping[str, Correction] | None = None) -> Plan:
    """What a given Fit is predicted to take on a card, whether it fits or not.

    ``compile`` is not predicted: the figures are those of the model as it is.
    """
    wanted = card_of(card) if isinstance(card, str) else card
    request = _request("estimate", job, [wanted], "rounding", [], corrections)
    return Plan.model_validate(_ask({**request, "fit": fit.model_dump(mode="json")}))


def _request(
    verb: str,
    job: Job,
    wanted: Iterable[Card] | None,
    allow: str,
    offers: Iterable[Offer] | None,
    corrections: Mapping[str, Correction] | None,
) -> dict[str, Any]:
    return {
        "verb": verb,
        "job": job.model_dump(mode="json"),
        "cards": [card.model_dump(mode="json") for card in (cards() if wanted is None else wanted)],
        "offers": [o.model_dump(mode="json") for o in (known_offers() if offers is None else offers)],
        "corrections": {name: [c.factor, c.runs] for name, c in (corrections or {}).items()},
        "allow": allow,
        "language": language(),
    }


def _ask(request: dict[str, Any]) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps(request).encode(),
        capture_output=True,
        timeout=TIME_LIMIT_SECONDS,
        check=False,
    )
    lines = done.stdout.splitlines()
    answer: dict[str, Any] = json.loads(lines[-1]) if done.returncode == 0 and lines else {}
    if "refusal" in answer:
        raise Refusal(answer["refusal"].pop("found"), **answer["refusal"])
    if "result" not in answer:
        told = done.stderr.decode("utf-8", "replace").strip()
        raise RuntimeError(f"the planning process ended with code {done.returncode}:\n{told[-4000:]}")
    return answer["result"]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What the child does with a request."""
    from fitune.planning.past import Correction
    from fitune.planning.planner import estimate_here, explain_here, plan_here

    set_language(request["language"])
    wanted = [Card.model_validate(card) for card in request["cards"]]
    settings: dict[str, Any] = {
        "offers": [Offer.model_validate(offer) for offer in request["offers"]],
        "allow": request["allow"],
        "corrections": {name: Correction(*pair) for name, pair in request["corrections"].items()},
    }
    job = Job.model_validate(request["job"])
    try:
        if request["verb"] == "explain":
            made = explain_here(job, wanted[0], **settings)
        elif request["verb"] == "estimate":
            fit = Fit.model_validate(request["fit"])
            made = estimate_here(job, wanted[0], fit, corrections=settings["corrections"])
        else:
            made = plan_here(job, wanted, **settings)
    except Refusal as refusal:
        fields = {"found": refusal.found, "where": refusal.where, "next_step": refusal.next_step, "code": refusal.code}
        return {"refusal": fields}
    return {"result": made.model_dump(mode="json")}


def main() -> None:
    """Read a request from standard input, write the answer as the last line of standard output."""
    from fitune.hf import light_imports

    with light_imports():
        print(json.dumps(answer(json.load(sys.stdin))))
