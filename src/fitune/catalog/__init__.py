"""Cards and prices as data files, and the few lines that read them. No torch."""

from fitune.catalog.gpus import CONTEXT, ContextSpread, card_of, cards, match_device
from fitune.catalog.prices import offers, own_prices_path, read_offers

__all__ = [
    "CONTEXT",
    "ContextSpread",
    "card_of",
    "cards",
    "match_device",
    "offers",
    "own_prices_path",
    "read_offers",
]
