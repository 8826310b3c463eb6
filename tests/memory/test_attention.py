"""The attention chooser against the written rules: the table for BERT, and every rule over a grid of cases."""

from itertools import product

import pytest
import torch

from fitune.memory import choose_kernel

FP16, BF16, FP32 = torch.float16, torch.bfloat16, torch.float32
OLD_TENSOR_CORES = [(7, 0), (7, 5)]
AMPERE_ADA = [(8, 0), (8, 6), (8, 9)]
HOPPER = [(9, 0)]

# mask, dtype, kernel on sm 7.x, on sm 8.x, on sm 9.0; head dim 64, dropout 0.1.
BERT = [
    (False, FP16, "efficient", "flash", "flash"),
    (False, BF16, "math", "flash", "flash"),
    (False, FP32, "efficient", "efficient", "efficient"),
    (True, FP16, "efficient", "efficient", "efficient"),
    (True, BF16, "math", "efficient", "efficient"),
    (True, FP32, "efficient", "efficient", "efficient"),
]


@pytest.mark.parametrize(("masked", "dtype", "old", "ampere", "hopper"), BERT)
def test_the_table_for_bert(masked: bool, dtype: torch.dtype, old: str, ampere: str, hopper: str) -> None:
    for cards, kernel in ((OLD_TENSOR_CORES, old), (AMPERE_ADA, ampere), (HOPPER, hopper)):
        for card in cards:
            for version in ((2, 6), (2, 9), (2, 13)):
                chosen = choose_kernel(card, dtype, masked=masked, dropout=0.1, head_dim=64, torch_version=version)
                assert chosen == kernel, (card, version)


CARDS = [(3, 7), (6, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)]
CASES = list(
    product(
        CARDS,
        [FP16, BF16, FP32],
        [False, True],
        [0.0, 0.1, 0.125],
        [32, 60, 64, 80, 128, 200, 256],
        [(1, 13), (2, 1), (2, 8)],
    )
)


def allowed(
    card: tuple[int, int], dtype: torch.dtype, masked: bool, p: float, width: int, version: tuple[int, int]
) -> set[str]:
    """Every kernel that the rules permit for a training step."""
    kernels = {"math"}
    half = dtype != FP32
    if version < (2, 0):
        return kernels
    if half and not masked:
        if version < (2, 2):
            fits = card >= (7, 5) and width <= 128 and width % 8 == 0
        else:
            fits = card >= (8, 0) and width <= 256 and (width <= 192 or card in ((8, 0), (9, 0), (10, 0)))
        kernels |= {"flash"} if fits else set()
    if (
        version >= (2, 7)
        and card in ((9, 0), (10, 0))
        and half
        and width % 8 == 0
        and width <= 128
        and p in (0.0, 0.125)
    ):
        kernels.add("cudnn")
    step = {FP32: 4 if card >= (8, 0) else 1}.get(dtype, 8 if card >= (7, 0) else 1)
    if card >= (5, 0) and (dtype != BF16 or card >= (8, 0)) and width % step == 0:
        kernels.add("efficient")
    return kernels


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 500


@pytest.mark.parametrize("card", CARDS)
def test_the_first_permitted_kernel_is_chosen(card: tuple[int, int]) -> None:
    for _, dtype, masked, p, width, version in (case for case in CASES if case[0] == card):
        permitted = allowed(card, dtype, masked, p, width, version)
        first = next(kernel for kernel in ("cudnn", "flash", "efficient", "math") if kernel in permitted)
        chosen = choose_kernel(card, dtype, masked=masked, dropout=p, head_dim=width, torch_version=version)
        assert chosen == first, (card, dtype, masked, p, width, version)


def test_without_a_gradient_wide_heads_are_flash_on_consumer_cards() -> None:
    assert choose_kernel((8, 9), FP16, masked=False, dropout=0, head_dim=256, trained=False) == "flash"
    assert choose_kernel((8, 9), FP16, masked=False, dropout=0, head_dim=256, trained=True) == "efficient"
