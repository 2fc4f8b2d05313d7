"""Orders and customers in databases."""

import sqlite3
from contextlib import closing

from shopdesk import receipts
from shopdesk.prompts import ROOT

_customers = {}


def _connect():
    return closing(sqlite3.connect(f"file:{ROOT}/data/orders.sqlite?mode=ro", uri=True))


def lookup_order(order_id: int) -> str:
    """Look up an order by its number."""
    with _connect() as database:
        row = database.execute(
            "SELECT item, cents FROM orders WHERE id = ?", (order_id,)
        ).fetchone()
    return receipts.print_receipt(*row) if row else "no such order"


def lookup_customer(customer: int) -> str:
    """Look up a customer by number."""
    if customer not in _customers:
        with _connect() as database:
            found = database.execute("SELECT id, name, level FROM customers").fetchall()
        _customers.update({number: (name, level) for number, name, level in found})
    name, level = _customers[customer]
    return f"{name} ({level})"


def lookup_archive(order_id: int) -> str:
    """Look up an archived order."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("ATTACH ? AS archive", (str(ROOT / "data/archive.sqlite"),))
        (item,) = database.execute(
            "SELECT item FROM archive.orders WHERE id = ?", (order_id,)
        ).fetchone()
    return item
