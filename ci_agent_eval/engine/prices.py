"""The price table of costs; costs by different tables are not comparable."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version


@cache
def get_price_table() -> str:
    """Return the name and version of the price table that the engine uses."""
    return f"genai-prices {version('genai-prices')}"
