"""Prices of parcels."""

from shopdesk import settings


def quote_parcel(weight: int) -> int:
    """Quote the price of a parcel by its weight."""
    return weight * settings.TARIFF
