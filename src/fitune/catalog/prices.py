"""Offers: cards at a price per hour, fitune's own and the user's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fitune.messages import _
from fitune.values import Offer, Refusal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]


def own_prices_path() -> Path:
    """Where the user's own prices lie: prices.toml in fitune's configuration folder."""
    base = os.environ.get("APPDATA") if sys.platform == "win32" else os.environ.get("XDG_CONFIG_HOME")
    return Path(base or Path.home() / ".config") / "fitune" / "prices.toml"


def offers(prices: str | Path | None = None) -> tuple[Offer, ...]:
    """fitune's own offers, then the user's: the same card at the same place is replaced, anything else added.

    Args:
        prices: a TOML file; None: ``own_prices_path()``, where it exists.

    Raises:
        Refusal: the file is missing or wrong.
    """
    found = read_offers(Path(__file__).parent / "offers.toml")
    if prices is not None:
        return merged(found, read_offers(prices))
    return merged(found, read_offers(own_prices_path())) if own_prices_path().is_file() else found


def merged(first: Iterable[Offer], second: Iterable[Offer]) -> tuple[Offer, ...]:
    by_place = {(offer.card, offer.place): offer for offer in first}
    by_place.update({(offer.card, offer.place): offer for offer in second})
    return tuple(by_place.values())


def read_offers(path: str | Path) -> tuple[Offer, ...]:
    """The ``[[offer]]`` tables of a file.

    Raises:
        Refusal: no such file, not TOML, or a wrong table.
    """
    try:
        plain: dict[str, Any] = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Refusal(
            _("the prices cannot be read: {error}", error=error), where=str(path), next_step=_sample(), code="FT351"
        ) from None
    found: list[Offer] = []
    for number, row in enumerate(plain.get("offer", []), start=1):
        try:
            found.append(Offer.model_validate(row))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise Refusal(
                _("offer {number}, {field}: {message}", number=number, field=field, message=first["msg"]),
                where=str(path),
                next_step=_sample(),
                code="FT351",
            ) from None
    return tuple(found)


def _sample() -> str:
    return _("An offer looks like this: {sample}", sample='[[offer]] card = "t4" place = "..." price_per_hour = 1.0')
