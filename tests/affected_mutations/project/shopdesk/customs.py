"""Duties, computed at import."""

from shopdesk.settings import DISCOUNTS
from shopdesk.settings import TARIFF as BASE

DUTY = BASE * 3
LOWEST = min(DISCOUNTS)


def quote_duty(weight: int) -> int:
    """Quote the duty of a parcel."""
    return weight + DUTY - LOWEST
