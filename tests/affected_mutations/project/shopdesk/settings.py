"""Settings of the shop, which every module imports."""

from dataclasses import dataclass

CURRENCY = "EUR"
TARIFF = 7
REFUND_LIMIT = 5000
DISCOUNTS = (5, 10, 15)


@dataclass(frozen=True)
class Shop:
    """The shop."""

    name: str = "Lamp & Leaf"
    desk: str = "front"


def describe_shop(shop=Shop()):
    return f"{shop.name}, {shop.desk} desk"


def unused_setting():
    return "nobody asks"
