"""The order database and the tools that work on it: real SQL on a real SQLite file."""

import sqlite3
from dataclasses import dataclass

SCHEMA = """
create table orders (
    id integer primary key, email text, item text, price_cents integer,
    status text not null default 'delivered'
);
create table approvals (order_id integer, amount_cents integer);
"""

ORDERS = [
    (1001, "ada@example.com", "kettle", 3900),
    (1002, "grace@example.com", "espresso machine", 74900),
    (1003, "linus@example.com", "mug", 900),
    (1004, "linus@example.com", "grinder", 12900),
    (1005, "linus@example.com", "filter papers", 400),
    (1006, "linus@example.com", "scale", 4500),
]


@dataclass(frozen=True)
class Order:
    id: int
    email: str
    item: str
    price_cents: int
    status: str


class OrderBook:
    """The tools of the refund desk."""

    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.db.executescript(SCHEMA)
        rows = "insert into orders (id, email, item, price_cents) values (?, ?, ?, ?)"
        self.db.executemany(rows, ORDERS)
        self.db.commit()

    def lookup_order(self, order_id):
        columns = "select id, email, item, price_cents, status from orders where id = ?"
        row = self.db.execute(columns, (order_id,)).fetchone()
        return Order(*row) if row else None

    def list_order_ids(self, email):
        rows = self.db.execute("select id from orders where email = ? order by id", (email,))
        return [order_id for (order_id,) in rows]

    def ask_manager(self, order_id, amount_cents):
        self.db.execute("insert into approvals values (?, ?)", (order_id, amount_cents))
        self.db.commit()
        return "approved"

    def issue_refund(self, order_id, amount_cents):
        self.db.execute("update orders set status = 'refunded' where id = ?", (order_id,))
        self.db.commit()
        return f"refunded {amount_cents / 100:.2f}"

    def close(self):
        self.db.close()
