"""Sizes of parcels and gifts."""

from enum import Enum


class Size(Enum):
    """A size."""

    SMALL = "small"
    LARGE = "large"
