"""The way through a step is measured, kept, and never touches what is learned."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForTokenClassification

from fitune.hf import CannotPack, Columns
from fitune.tasks import Learner
from fitune.training import pacing
from fitune.training.pacing import Pace, choose_pace
from fitune.values import Fit

OPEN = {"attention", "micro_batch_tokens"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FITUNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def learner() -> Learner:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=3,
    )
    return Learner(BertForTokenClassification(config))


@pytest.fixture
def columns() -> Columns:
    draw = np.random.default_rng(0)
    lengths = draw.integers(5, 60, 64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Columns(
        ids_T=draw.integers(1, 50, starts[-1]).astype(np.int32),
        starts_W1=starts,
        example_starts_E1=np.arange(65),
        pad_id=0,
        token_labels_T=draw.integers(0, 3, starts[-1]).astype(np.int16),
        weights_W=lengths.astype(float),
    )


def choose(learner: Learner, columns: Columns, fit: Fit | None = None, **changed: Any) -> Pace:
    options: dict[str, Any] = {"batch_size": 16, "steps_total": 10_000, "open_fields": OPEN} | changed
    return choose_pace(learner, columns, fit or Fit(micro_batch_tokens=512), **options)


def test_every_way_is_measured_and_the_fastest_taken(learner: Learner, columns: Columns) -> None:
    pace = choose(learner, columns)
    assert {"padded 512", "packed 512", "packed 1024"} <= set(pace.measured_seconds)
    way = f"{'packed' if pace.attention == 'packed' else 'padded'} {pace.micro_batch_tokens}"
    fastest = min(pace.measured_seconds.values())
    assert pace.measured_seconds[way] <= fastest / pacing.PACKED_PAYS + 1e-9
    assert learner.packing is None


def test_the_faster_way_wins(learner: Learner, columns: Columns, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(_learner: Any, _step: Any, ways: Any) -> dict[str, float]:
        return {pacing.name_of(*way): 1.0 if way == ("packed", 1024) else 2.0 for way in ways}

    monkeypatch.setattr(pacing, "measure", told)
    pace = choose(learner, columns)
    assert (pace.attention, pace.micro_batch_tokens) == ("packed", 1024)


def test_measuring_leaves_no_trace(learner: Learner, columns: Columns) -> None:
    weights = [p.detach().clone() for p in learner.parameters()]
    torch.manual_seed(3)
    state = torch.get_rng_state()
    choose(learner, columns)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(weights, learner.parameters(), strict=True))
    assert all(p.grad is None for p in learner.parameters())
    assert learner.training


def test_the_next_run_reads_what_was_measured(
    learner: Learner, columns: Columns, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = choose(learner, columns)
    assert len(list((cache / "pace").iterdir())) == 1
    monkeypatch.setattr(pacing, "measure", lambda *_: pytest.fail("measured again"))
    assert choose(learner, columns).measured_seconds == first.measured_seconds


def test_other_lengths_are_measured_anew(learner: Learner, columns: Columns, cache: Path) -> None:
    choose(learner, columns)
    choose(learner, columns, batch_size=32)
    assert len(list((cache / "pace").iterdir())) == 2


def test_a_damaged_cache_is_measured_again(learner: Learner, columns: Columns, cache: Path) -> None:
    choose(learner, columns)
    (file,) = (cache / "pace").iterdir()
    file.write_text('{"padded 5')
    assert choose(learner, columns).measured_seconds


def test_a_short_run_is_not_measured(learner: Learner, columns: Columns) -> None:
    pace = choose(learner, columns, steps_total=20)
    assert (pace.attention, pace.micro_batch_tokens, pace.measured_seconds) == ("sdpa", 512, {})


def test_what_was_asked_for_stays(learner: Learner, columns: Columns) -> None:
    pace = choose(learner, columns, Fit(attention="eager", micro_batch_tokens=64), open_fields={"micro_batch_tokens"})
    assert (pace.attention, pace.micro_batch_tokens) == ("eager", 64)


def test_a_model_that_cannot_pack_stays_padded(
    learner: Learner, columns: Columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise CannotPack("no")

    monkeypatch.setattr(learner, "run_packed", refuse)
    pace = choose(learner, columns)
    assert (pace.attention, pace.reason) == ("sdpa", "no")
