"""The virtual card: counts, fails where a card would, and leaves nothing behind."""

import contextlib
import gc
import re
import threading

import pytest
import torch

from fitune.memory import VirtualCard

MIB = 1 << 20


def test_bytes_live_as_long_as_their_storage() -> None:
    with VirtualCard("1GiB") as card:
        x = torch.empty(MIB)
        assert card.live_bytes == 4 * MIB
        view = x[1:].t()
        del x
        assert card.live_bytes == 4 * MIB
        del view
        assert card.live_bytes == 0
        assert card.reserved_bytes == 20 * MIB
    assert card.peak_live_bytes == 4 * MIB


def test_it_fails_when_the_segment_does_not_fit_and_with_the_text_of_pytorch() -> None:
    with VirtualCard("64MiB") as card:
        kept = torch.empty(8 * MIB)  # 32 MiB
        with pytest.raises(torch.OutOfMemoryError) as raised:
            torch.empty(9 * MIB)
        assert card.failures == 1
        assert card.live_bytes == 32 * MIB
        torch.empty(8 * MIB)  # the rest is usable
    text = str(raised.value)
    assert text.startswith(
        "CUDA out of memory. Tried to allocate 36.00 MiB. GPU 0 has a total capacity of 64.00 MiB of which 32.00 MiB is"
    )
    assert "Of the allocated memory 32.00 MiB is allocated by PyTorch, and 0 bytes is reserved" in text
    assert re.search(r"Process \d+ has 32.00 MiB memory in use", text)
    del kept


def test_cached_segments_are_given_back_before_it_fails() -> None:
    with VirtualCard("64MiB"):
        torch.empty(8 * MIB)
        torch.empty(12 * MIB)  # 48 MiB: only after the cached 32 MiB went back


def test_the_context_takes_its_share() -> None:
    with VirtualCard("64MiB", context_bytes=40 * MIB), pytest.raises(torch.OutOfMemoryError):
        torch.empty(8 * MIB)


def test_an_adopted_model_is_on_the_card_once() -> None:
    model = torch.nn.Linear(512, 512)
    card = VirtualCard("1GiB")
    card.adopt(model, model.weight)
    assert card.live_bytes == 512 * 512 * 4 + 512 * 4
    with card:
        model(torch.randn(4, 512)).sum().backward()
    assert model.weight.grad is not None
    assert card.live_bytes >= 2 * 512 * 512 * 4
    del model
    gc.collect()
    assert card.live_bytes < 512 * 512


def test_the_backward_is_seen_and_can_fail_without_leaving_bytes_behind() -> None:
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)])

    def step() -> None:
        model(torch.randn(8, 64)).square().mean().backward()

    card = VirtualCard()
    card.adopt(model)
    with card:
        step()
        model.zero_grad()
    gc.collect()
    resting, total = card.live_bytes, card.allocations
    for k in range(1, total + 1):
        failing = VirtualCard(fail_at=k)
        failing.adopt(model)
        with failing:
            with contextlib.suppress(torch.OutOfMemoryError):
                step()
            model.zero_grad()
        assert (failing.live_bytes, failing.failures) == (resting, 1)


def test_an_output_that_failed_is_not_kept_by_the_traceback() -> None:
    with VirtualCard("64MiB") as card:
        x = torch.ones(4 * MIB)
        try:
            (x + 1, x.double() @ torch.ones(3))
        except torch.OutOfMemoryError as error:
            kept = error
        else:
            kept = None
        assert kept is not None
        gc.collect()
        assert card.live_bytes == 16 * MIB


def test_the_card_may_be_entered_again_and_from_other_threads() -> None:
    card = VirtualCard("1GiB")
    kept: list[torch.Tensor] = []

    def work() -> None:
        with card:
            kept.append(torch.empty(MIB))

    with card, card:
        kept.append(torch.empty(MIB))
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        kept.append(torch.empty(MIB))
    torch.empty(MIB)
    assert card.live_bytes == 12 * MIB


def test_sizes_are_read_strictly() -> None:
    assert VirtualCard("1.5 GiB").capacity_bytes == 3 << 29
    assert VirtualCard("800MB").capacity_bytes == 800_000_000
    with pytest.raises(ValueError, match="not a size"):
        VirtualCard("4 bananas GiBB")
