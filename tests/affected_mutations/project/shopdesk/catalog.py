"""The catalogue, which is loaded once."""

import csv
from functools import cached_property, lru_cache

from shopdesk.prompts import ROOT


@lru_cache
def load_stock():
    with (ROOT / "data/stock.csv").open(encoding="utf-8", newline="") as file:
        return {row["item"]: clean_row(row) for row in csv.DictReader(file)}


def clean_row(row):
    return {"price": int(row["price"]), "count": int(row["count"])}


class Levels:
    """Discounts by level, read when first needed."""

    @cached_property
    def table(self):
        import json

        return json.loads((ROOT / "data/levels.json").read_text("utf-8"))


LEVELS = Levels()


def find_price(item: str) -> int:
    """Find the price of an item."""
    return load_stock()[item]["price"]


def count_stock(item: str) -> int:
    """Count the stock of an item."""
    return load_stock()[item]["count"]


def find_discount(level: str) -> int:
    """Find the discount of a level."""
    return LEVELS.table[level]
