"""torch.compile is tried, kept only where it is the fastest way, and never in the way. No C compiler is needed here."""

import hashlib
import json
from typing import Any

import numpy as np
import pytest
import torch
from torch._dynamo.utils import counters
from transformers import BertConfig, BertForTokenClassification

from fitune.hf import Columns, quicken_dropout
from fitune.tasks import Learner, load
from fitune.training import compiling, pacing, train
from fitune.training.compiling import Trial, settle_compiled
from fitune.training.pacing import Pace
from fitune.values import Fit

from .test_memory import memory, of_kind
from .test_resume import job_of, stop_at, weights
from .tiny import write_model, write_rows

REFERENCE = {"padded 512": 0.2, "packed 1024": 0.1}


@pytest.fixture(autouse=True)
def backend(tmp_path, monkeypatch):
    monkeypatch.setenv("FITUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("fitune.hf.compiling.BACKEND", "eager")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiling")
    write_model(folder / "model")
    config = json.loads((folder / "model" / "config.json").read_text(encoding="utf-8"))
    # Compiled or not, the same numbers: only the generators of dropout differ.
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0}
    (folder / "model" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_rows(folder / "train.tsv")
    write_rows(folder / "dev.tsv", 20, seed=1)
    return folder


@pytest.fixture
def learner() -> Learner:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    return Learner(BertForTokenClassification(BertConfig(vocab_size=50, max_position_embeddings=64, **sizes)))


@pytest.fixture
def columns() -> Columns:
    draw = np.random.default_rng(0)
    lengths = draw.integers(5, 60, 32)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Columns(
        ids_T=draw.integers(1, 50, starts[-1]).astype(np.int32),
        starts_W1=starts,
        example_starts_E1=np.arange(33),
        pad_id=0,
        token_labels_T=draw.integers(0, 2, starts[-1]).astype(np.int16),
        weights_W=lengths.astype(float),
    )


def settle(learner: Learner, columns: Columns, **changed: Any) -> Pace:
    fields: dict[str, Any] = {
        "fit": Fit(compile=True, micro_batch_tokens=512),
        "pace": Pace("packed", 1024, "measured", dict(REFERENCE)),
        "batch_size": 8,
        "steps_total": 1000,
        "open_fields": {"attention", "micro_batch_tokens"},
    }
    return settle_compiled(learner, columns, **fields | changed)


def gives(monkeypatch: pytest.MonkeyPatch, seconds: float, compile_seconds: float = 10.0) -> list[int | None]:
    tried: list[int | None] = []

    def told(_learner: Any, _step: Any, tokens: int | None) -> Trial:
        tried.append(tokens)
        return Trial(seconds, compile_seconds)

    monkeypatch.setattr(compiling, "try_compiled", told)
    return tried


def compiles_whatever_it_costs(monkeypatch):
    monkeypatch.setattr(compiling, "COMPILED_PAYS", 1e9)
    monkeypatch.setattr(compiling, "_promises", lambda *_: True)


# -- the choice -------------------------------------------------------------------------------------------------------


def test_the_compiled_way_wins_where_it_is_clearly_the_fastest(learner, columns, monkeypatch):
    tried = gives(monkeypatch, 0.05)
    pace = settle(learner, columns)
    assert tried == [512]  # as large passes as are best for the padded way
    assert (pace.compiled, pace.attention, pace.micro_batch_tokens) == (True, "sdpa", 512)
    assert learner.compiled is not None
    assert pace.facts()["measured_seconds"] == {**REFERENCE, "compiled 512": 0.05}
    assert pace.facts()["compile_seconds"] == 10.0
    assert "won back after 200 of 1000 steps" in pace.compile_note
    learner.run_uncompiled()
    # It is spent by the time that this is known: what is left goes the faster way, and the notice says so.
    monkeypatch.setattr(compiling, "read_figures", lambda _key: None)
    short = settle(learner, columns, steps_total=150)
    assert short.compiled
    assert "did not pay: that takes 200 steps, and this run has 150" in short.compile_note


@pytest.mark.parametrize("seconds", [0.096, 0.15, 0.3])
def test_a_few_percent_are_not_enough(learner, columns, monkeypatch, seconds):
    gives(monkeypatch, seconds)
    pace = settle(learner, columns)
    assert (pace.compiled, pace.attention, pace.micro_batch_tokens) == (False, "packed", 1024)
    assert learner.compiled is None
    assert "not kept" in pace.compile_note
    assert "packed 1024" in pace.compile_note


def test_what_lost_before_is_not_compiled_again(learner, columns, monkeypatch):
    gives(monkeypatch, 0.3)
    first = settle(learner, columns)
    tried = gives(monkeypatch, 0.01)
    again = settle(learner, columns)
    assert not tried
    assert (again.compiled, again.compile_note) == (False, first.compile_note)


def test_a_short_run_does_not_pay_for_compiling_what_is_known_to_win(learner, columns, monkeypatch):
    gives(monkeypatch, 0.05)
    settle(learner, columns)
    learner.run_uncompiled()
    tried = gives(monkeypatch, 0.05)
    # 10 s of compiling against 0.05 s a step.
    assert not settle(learner, columns, steps_total=190).compiled
    assert not tried
    assert settle(learner, columns, steps_total=210).compiled
    assert tried


def test_packed_passes_that_were_asked_for_stay(learner, columns, monkeypatch):
    tried = gives(monkeypatch, 0.01)
    pace = settle(learner, columns, pace=Pace("packed", 512, "as asked for"), open_fields=set())
    assert not tried
    assert not pace.compiled
    assert pace.compile_note


def test_a_compiler_that_fails_is_named_and_leaves_no_trace(learner, columns, monkeypatch):
    def fail(*_arguments: Any) -> Any:
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC environment variable.")

    monkeypatch.setattr("fitune.hf.compiling.BACKEND", fail)
    torch.manual_seed(3)
    state = torch.get_rng_state()
    pace = settle(learner, columns)
    assert "Failed to find C compiler." in pace.compile_failure
    assert (pace.compiled, pace.attention, learner.compiled) == (False, "packed", None)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None for p in learner.parameters())
    # It may be installed by the next time.
    tried = gives(monkeypatch, 0.05)
    settle(learner, columns)
    assert tried


def test_trying_leaves_no_trace_and_finds_both_figures(learner, columns):
    quicken_dropout(learner)
    before = [p.detach().clone() for p in learner.parameters()]
    names = list(learner.state_dict())
    counters["graph_break"].clear()
    torch.manual_seed(3)
    state = torch.get_rng_state()
    learner.run_compiled()
    trial = compiling.try_compiled(learner, pacing.typical_step(columns, 8), 512)
    assert trial.compile_seconds > trial.seconds > 0
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) and b.grad is None for a, b in zip(before, learner.parameters(), strict=True))
    # In one piece: nothing is read back from the device inside a pass, not even by dropout on a CPU.
    assert not counters["graph_break"]
    assert list(learner.state_dict()) == names
    assert "compiled" not in dict(learner.named_modules())


def test_a_compiled_pass_is_the_models_own(learner, columns):
    inputs = {name: value for name, value in columns.collate(np.arange(4)).items() if name != "weights"}
    learner.model.config.hidden_dropout_prob = 0.0
    for module in learner.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    plain, _logits = learner(**inputs)
    learner.run_compiled()
    calls: list[None] = []
    compiled = learner.compiled
    learner.compiled = lambda **given: (calls.append(None), compiled(**given))[1]
    found, _logits = learner(**inputs)
    assert len(calls) == 1
    assert torch.allclose(found, plain, rtol=1e-5)
    with torch.no_grad():
        learner.eval()(**inputs)
    assert len(calls) == 1  # evaluation is the model's own


# -- a whole run ------------------------------------------------------------------------------------------------------


@pytest.fixture
def compiled_run(place, tmp_path, monkeypatch):
    compiles_whatever_it_costs(monkeypatch)
    return train(job_of(place), run_directory=tmp_path / "undisturbed", fit=Fit(compile=True))


def test_a_compiled_run_goes_on_to_the_same_bits(place, tmp_path, monkeypatch, compiled_run):
    started = of_kind(compiled_run, "started")[0].data
    assert started["fit"]["compile"]
    assert started["pace"]["compiled"]
    assert started["pace"]["compile_seconds"] > 0
    assert not of_kind(compiled_run, "warning")
    loaded = load(compiled_run.model_path)  # plain names in the file, whatever trained
    assert not any("_orig_mod" in name for name in loaded.learner.state_dict())
    train(job_of(place), run_directory=tmp_path / "run", fit=Fit(compile=True), listeners=[stop_at(8)])
    # The same command; figures that say otherwise now change nothing.
    monkeypatch.setattr(compiling, "COMPILED_PAYS", 0.0)
    run = train(job_of(place), run_directory=tmp_path / "run", fit=Fit(compile=True))
    first, again = (event.data["pace"] for event in of_kind(run, "started"))
    assert again["compiled"]
    assert (first["micro_batch_tokens"], first["attention"]) == (again["micro_batch_tokens"], again["attention"])
    assert weights(run) == weights(compiled_run)


def test_a_run_whose_trial_lost_goes_on_without(place, tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "COMPILED_PAYS", 0.0)
    fit = Fit(compile=True)
    plain = train(job_of(place), run_directory=tmp_path / "plain", fit=fit)
    assert not of_kind(plain, "started")[0].data["fit"]["compile"]
    train(job_of(place), run_directory=tmp_path / "run", fit=fit, listeners=[stop_at(8)])
    compiles_whatever_it_costs(monkeypatch)
    run = train(job_of(place), run_directory=tmp_path / "run", fit=fit)
    assert [event.data["pace"]["compiled"] for event in of_kind(run, "started")] == [False, False]
    assert weights(run) == weights(plain)


def test_a_compiler_that_fails_later_costs_a_notice(place, tmp_path, monkeypatch, compiled_run):
    calls = []

    def runs_for_a_while(graph: Any, _examples: Any) -> Any:
        def run(*arguments: Any) -> Any:
            calls.append(None)
            if len(calls) > 20:
                raise RuntimeError("Triton went away")
            return graph.forward(*arguments)

        return run

    monkeypatch.setattr("fitune.hf.compiling.BACKEND", runs_for_a_while)
    run = train(job_of(place), run_directory=tmp_path / "run", fit=Fit(compile=True))
    (warning,) = of_kind(run, "warning")
    assert warning.data["code"] == "FT424"
    assert "Triton went away" in warning.data["text"]
    assert warning.step > 0
    assert run.events()[-1].data["reason"] == "finished"
    # The step that failed was taken again whole: the losses are those of an undisturbed run.
    losses, undisturbed = ([e.data["loss"] for e in of_kind(r, "step")] for r in (run, compiled_run))
    assert losses == pytest.approx(undisturbed, rel=1e-4)


def test_no_compiler_at_all_costs_a_notice(place, tmp_path, monkeypatch):
    def fail(*_arguments: Any) -> Any:
        raise RuntimeError("Cannot find a working triton installation")

    monkeypatch.setattr("fitune.hf.compiling.BACKEND", fail)
    run = train(job_of(place, epochs=1), run_directory=tmp_path / "run", fit=Fit(compile=True))
    (warning,) = of_kind(run, "warning")
    assert warning.data["code"] == "FT424"
    assert "Cannot find a working triton" in warning.data["text"]
    assert not of_kind(run, "started")[0].data["fit"]["compile"]


def test_a_compiled_pass_that_runs_out_of_memory_is_cut_smaller(place, tmp_path, monkeypatch):
    compiles_whatever_it_costs(monkeypatch)
    memory(monkeypatch, lambda _learner, rows, columns: rows * columns > 60)
    run = train(job_of(place, epochs=1), run_directory=tmp_path / "run", fit=Fit(compile=True, micro_batch_tokens=160))
    assert of_kind(run, "started")[0].data["fit"]["compile"]
    changes = of_kind(run, "micro_batch")
    assert changes
    assert {event.data["reason"] for event in changes} == {"out_of_memory"}
    assert run.events()[-1].data["reason"] == "finished"


def test_a_row_that_does_not_fit_compiled_runs_as_the_model_is(place, tmp_path, monkeypatch):
    compiles_whatever_it_costs(monkeypatch)
    tight = []
    memory(monkeypatch, lambda learner, *_: bool(tight) and learner.compiled is not None)

    def listen(event):
        if event.kind == "step" and event.step == 2:
            tight.append(event)

    run = train(job_of(place, epochs=1), run_directory=tmp_path / "run", fit=Fit(compile=True), listeners=[listen])
    assert "knob: compile" in [event.data["reason"] for event in of_kind(run, "micro_batch")]
    assert run.events()[-1].data["reason"] == "finished"


def test_the_file_is_the_same_compiled_or_not(compiled_run, place, tmp_path):
    """Config and tokenizer byte for byte; the weights under the same names."""
    plain = train(job_of(place), run_directory=tmp_path / "plain")
    for name in ("config.json", "tokenizer.json"):
        digests = {hashlib.sha256((run.model_path / name).read_bytes()).hexdigest() for run in (plain, compiled_run)}
        assert len(digests) == 1
    names = [list(load(run.model_path).learner.state_dict()) for run in (plain, compiled_run)]
    assert names[0] == names[1]
