"""``fitune plan`` and ``fitune cards`` as users see them; the simulation itself is planning's."""

import json
from pathlib import Path
from typing import Any

import pytest

from fitune.catalog import card_of
from fitune.cli.train import fit_of
from fitune.planning import Explanation, Planning, Unfit, child, offers_compiling
from fitune.planning.outcome import LargeTensor, Lengths
from fitune.values import Estimate, Fidelity, Fit, Job, Plan, Refusal, RejectedFit
from tests.cli.conftest import Call

GIB = 1 << 30


def rejected(reason: str) -> RejectedFit:
    return RejectedFit(fit=Fit(), fidelity=Fidelity.EXACT, reason=reason)


def planning(*ids: str, seconds: float = 600) -> Planning:
    estimate = Estimate(
        predicted_peak_bytes=5 * GIB,
        predicted_seconds=seconds,
        predicted_seconds_low=420,
        predicted_seconds_high=1020,
        predicted_seconds_per_epoch=200,
        predicted_price=0.25,
        currency="CNY",
    )
    fit = Fit(precision="fp16", micro_batch_tokens=2048)
    plans = [
        Plan(
            job=Job(train="x"),
            card=card_of(name),
            fit=fit,
            fidelity=Fidelity.ROUNDING,
            estimate=estimate,
            rejected=(rejected("needs 13.1 GiB of 11.6 usable"),),
        )
        for name in ids
    ]
    lengths = Lengths(rows=9, windows=10, longest=512, mean=99.5, most_in_95_percent=300, basis="characters")
    unfit = (Unfit(card=card_of("gtx1060-6g"), rejected=(rejected("needs 7.0 GiB of 5.5 usable"),)),)
    return Planning(plans=tuple(plans), unfit=unfit if len(ids) != 1 else (), lengths=lengths, notes=("a note",))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A training file; the child process is stood in for."""
    path = tmp_path / "train.json"
    path.write_text('{"text": "甲"}\n', encoding="utf-8")

    def ask(request: dict[str, Any]) -> Any:
        ids = [card["id"] for card in request["cards"]]
        made = planning(*(ids if len(ids) == 1 else ("t4", "a10g")))
        if request["verb"] != "explain":
            return made.model_dump(mode="json")
        tensor = LargeTensor(size_bytes=GIB, module="model.bert", op="mm", dtype="float32", phase="forward")
        picture = "<svg xmlns='http://www.w3.org/2000/svg'/>"
        explained = Explanation(planning=made, timeline_svg=picture, largest=(tensor,), cheapest_change="none")
        return explained.model_dump(mode="json")

    monkeypatch.setattr(child, "_ask", ask)
    return str(path)


def test_all_cards_in_one_table(command: Call, data: str) -> None:
    shown = command("plan", data)
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert any(line.startswith("t4") and "0.25 CNY" in line and "2048 tokens a pass" in line for line in lines)
    assert any(line.startswith("gtx1060-6g") and "needs 7.0 GiB of 5.5 usable" in line for line in lines)
    assert "a note" in shown.out


def test_one_card_with_its_reasons_and_prices(command: Call, data: str) -> None:
    shown = command("plan", data, "--card", "t4")
    assert shown.code == 0, shown.err
    for text in ("5.00 GiB of 14.56 GiB", "0.25 CNY", "needs 13.1 GiB of 11.6 usable", "7.0 min - 17.0 min"):
        assert text in shown.out


def test_explain_draws_and_names_the_largest(command: Call, data: str) -> None:
    shown = command("plan", data, "--card", "t4", "--explain", "--out", "picture.svg")
    assert shown.code == 0, shown.err
    assert Path("picture.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "model.bert" in shown.out
    assert "Cheapest change: none" in shown.out
    assert command("plan", data, "--explain").code == 2


def test_json_is_whole(command: Call, data: str) -> None:
    plain = json.loads(command("plan", data, "--json").out)
    assert [plan["card"]["id"] for plan in plain["plans"]] == ["t4", "a10g"]


def test_train_takes_the_fit_of_a_plan(command: Call, data: str) -> None:
    Path("plan.json").write_text(command("plan", data, "--card", "t4", "--json").out, encoding="utf-8")
    assert fit_of(None, None, "plan.json") == Fit(precision="fp16", micro_batch_tokens=2048)
    assert fit_of(None, "fp32", "plan.json") == Fit(micro_batch_tokens=2048)
    Path("plans.json").write_text(command("plan", data, "--json").out, encoding="utf-8")
    for wrong in ("plans.json", "nothing.json", data):
        with pytest.raises(Refusal):
            fit_of(None, None, wrong)


def test_compiling_is_offered_for_long_jobs_on_a_card_alone(command: Call, data: str) -> None:
    assert "--compile" not in command("plan", data, "--card", "t4").out
    long, short = planning("t4", seconds=3600).plans[0], planning("t4", seconds=1700).plans[0]
    assert (offers_compiling(long), offers_compiling(short)) == (True, False)
    cpu = card_of("t4").model_copy(update={"compute_capability": None})
    assert not offers_compiling(long.model_copy(update={"card": cpu}))
    assert not offers_compiling(long.model_copy(update={"estimate": None}))


def test_a_long_job_is_told_of_compiling(command: Call, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_ask", lambda _request: planning("t4", seconds=3600).model_dump(mode="json"))
    assert "--compile: fitune train tries it on one step" in command("plan", data, "--card", "t4").out


def test_compile_is_a_memory_choice_that_was_typed(command: Call, data: str) -> None:
    fit = fit_of(None, None, compile_model=True)
    assert fit is not None
    assert fit.model_fields_set == {"compile"}
    assert fit.compile
    assert fit_of(None, None) is None
    Path("plan.json").write_text(command("plan", data, "--card", "t4", "--json").out, encoding="utf-8")
    planned = fit_of(None, None, "plan.json", compile_model=True)
    assert planned == Fit(precision="fp16", micro_batch_tokens=2048, compile=True)


def test_wrong_words_are_refused(command: Call, data: str) -> None:
    assert command("plan", data, "--allow", "everything").code == 2
    refused = command("plan", data, "--card", "voodoo2")
    assert refused.code == 2
    assert "FT350" in refused.err


def test_cards_are_listed_with_sources(command: Call) -> None:
    shown = command("cards")
    assert shown.code == 0, shown.err
    assert any(line.startswith("rtx3060-12g") and "11.75" in line for line in shown.out.splitlines())
    listed = json.loads(command("cards", "--json").out)
    assert all(card["sources"] for card in listed)
    assert command("cards", "--mine").code == 0


@pytest.mark.parametrize(
    ("option", "value", "step"), [("--micro-batch", "0", "from 1"), ("--precision", "fp8", "'bf16'")]
)
def test_an_impossible_memory_setting_says_what_is_possible(
    command: Call, data: str, option: str, value: str, step: str
) -> None:
    result = command("train", data, option, value)
    assert result.code == 2
    assert option in result.err
    assert step in result.err
    chinese = command("train", data, option, value, "--lang", "zh").err
    assert "Input should" not in chinese
    assert "这个值不行" in chinese
