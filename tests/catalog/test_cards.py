"""Every row of the catalogue is plausible; ids are found; prices are merged."""

from pathlib import Path

import pytest

from fitune.catalog import card_of, cards, gpus, match_device, offers
from fitune.catalog.gpus import GIB
from fitune.values import Card, Refusal

ROWS = gpus.tomllib.loads((Path(gpus.__file__).parent / "cards.toml").read_text(encoding="utf-8"))["card"]
CUDA = [card for card in cards() if card.compute_capability]
SM = {(6, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (12, 0)}
NAMED = (
    "gtx1060-6g gtx1660-6g rtx2060-6g rtx2080ti-11g rtx3050-8g rtx3060-12g rtx3070-8g rtx3080-10g rtx3090-24g "
    "rtx4060-8g rtx4070-12g rtx4080-16g rtx4090-24g rtx5060-8g rtx5070-12g rtx5080-16g rtx5090-32g t4 p100-16g "
    "v100-16g v100-32g a10 a10g a30 a100-40g a100-80g l4 l40s rtxa4000-16g rtxa5000-24g rtxa6000-48g h20 h100 h200 "
    "cpu apple"
)


def box_bytes(card: Card) -> int:
    return next(row["box_gb"] for row in ROWS if row["id"] == card.id) * GIB


def test_ids_are_unique_and_the_named_ones_are_there() -> None:
    ids = [card.id for card in cards()]
    assert len(set(ids)) == len(ids)
    assert set(NAMED.split()) <= set(ids)


@pytest.mark.parametrize("card", CUDA, ids=lambda c: c.id)
def test_a_row_is_plausible(card: Card) -> None:
    assert card.compute_capability in SM
    assert 0.85 * box_bytes(card) <= card.memory_bytes <= box_bytes(card)
    assert 0.1 * GIB < card.context_bytes < GIB
    assert 3 < card.fp32_tflops < 120
    if card.compute_capability >= (7, 0):
        assert card.fp16_tflops >= 1.9 * card.fp32_tflops
    assert (card.bf16_tflops > 0) == (card.compute_capability >= (8, 0))
    assert card.bf16_tflops in (0, card.fp16_tflops)
    # Bytes a second against fp32 operations a second: every card sold lies between 1 : 8 and 1 : 120.
    assert 8 < card.fp32_tflops * 1e12 / card.bandwidth_bytes_per_second < 120
    assert 150e9 < card.bandwidth_bytes_per_second < 5e12
    assert len(card.sources) >= 4
    assert all(card.sources)


def test_figures_that_the_whitepapers_print() -> None:
    printed = {"rtx3090-24g": (35.6, 71), "rtx4090-24g": (82.6, 165.2), "rtx2080ti-11g": (13.4, 53.8)}
    printed |= {"rtx5090-32g": (104.8, 209.5), "rtxa6000-48g": (38.7, 154.8), "rtx3080-10g": (29.8, 59.5)}
    for name, (fp32, fp16) in printed.items():
        assert card_of(name).fp32_tflops == pytest.approx(fp32, rel=0.01)
        assert card_of(name).fp16_tflops == pytest.approx(fp16, rel=0.01)


def test_the_context_agrees_with_the_simulators() -> None:
    semantics = pytest.importorskip("fitune.memory.semantics")
    for card in CUDA:
        assert card.context_bytes == semantics.context_of(card.compute_capability).typical_bytes


def test_cards_are_found_by_id_name_or_beginning() -> None:
    assert card_of("T4").id == "t4"
    assert card_of("NVIDIA GeForce RTX 4090").id == "rtx4090-24g"
    assert card_of("rtx3060-12g").id == card_of("rtx3060").id == "rtx3060-12g"
    with pytest.raises(Refusal, match="no card") as refused:
        card_of("rtx30")
    assert "rtx3060-12g" in refused.value.next_step
    with pytest.raises(Refusal):
        card_of("voodoo2")


def test_devices_are_matched_as_the_driver_names_them() -> None:
    assert match_device("Tesla T4", 15 * GIB).id == "t4"  # type: ignore[union-attr]
    assert match_device("NVIDIA A100-SXM4-80GB", 80 * GIB).id == "a100-80g"  # type: ignore[union-attr]
    assert match_device("NVIDIA GeForce RTX 3060 Laptop GPU", 6 * GIB).id == "rtx3060-6g-laptop"  # type: ignore[union-attr]
    for memory, wanted in ((8, "rtx4060ti-8g"), (16, "rtx4060ti-16g")):
        assert match_device("NVIDIA GeForce RTX 4060 Ti", memory * GIB).id == wanted  # type: ignore[union-attr]
    for name, wanted in (("Tesla V100-SXM2-32GB", "v100-32g"), ("NVIDIA GeForce GTX 1060 6GB", "gtx1060-6g")):
        assert match_device(name, card_of(wanted).memory_bytes).id == wanted  # type: ignore[union-attr]
    for card in CUDA:
        assert match_device(card.name, card.memory_bytes) == card
    assert match_device("Voodoo 2", GIB) is None


def test_the_users_prices_replace_and_add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert {o.card: o.price_per_hour for o in offers()} == {"t4": 1.0, "a10g": 3.5}
    mine = tmp_path / "mine.toml"
    place = offers()[0].place
    mine.write_text(
        f'[[offer]]\ncard = "t4"\nplace = "{place}"\nprice_per_hour = 2\n'
        '[[offer]]\ncard = "h20"\nplace = "here"\nprice_per_hour = 9.5\n',
        encoding="utf-8",
    )
    assert {o.card: o.price_per_hour for o in offers(mine)} == {"t4": 2.0, "a10g": 3.5, "h20": 9.5}
    assert all(card_of(offer.card) for offer in offers(mine))


@pytest.mark.parametrize(
    "text", ["[[offer]]\ncard = 't4'", "no toml at all", "[[offer]]\ncard='t4'\nplace='x'\nprice_per_hour=-1"]
)
def test_wrong_prices_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Refusal) as refused:
        offers(path)
    assert refused.value.code == "FT351"
    assert refused.value.where == str(path)
