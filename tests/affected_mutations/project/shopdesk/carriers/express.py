"""The fast carrier."""

from shopdesk.carriers.base import BaseCarrier


class Carrier(BaseCarrier):
    """Express."""

    name = "express"
    days = 1
