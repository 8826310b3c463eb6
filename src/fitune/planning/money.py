"""Money: hours times price, with the time until the first step."""

from collections.abc import Iterable

from fitune.values import Estimate, Offer


def price_of(seconds: float, offer: Offer) -> float:
    """What a job of so many seconds costs, in the offer's currency: setting up is paid for."""
    return (seconds + offer.setup_seconds) / 3600 * offer.price_per_hour


def with_price(estimate: Estimate, offers: Iterable[Offer]) -> Estimate:
    """The estimate with the price of the cheapest of these offers; as it is without one."""
    if estimate.predicted_seconds is None:
        return estimate
    priced = [(price_of(estimate.predicted_seconds, offer), offer.currency) for offer in offers]
    if not priced:
        return estimate
    price, currency = min(priced)
    return estimate.model_copy(update={"predicted_price": price, "currency": currency})
