"""The cheap carrier."""

from shopdesk.carriers.base import BaseCarrier


class Carrier(BaseCarrier):
    """Saver."""

    name = "saver"
