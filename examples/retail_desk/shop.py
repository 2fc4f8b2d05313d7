"""The shop's database and the tools that work on it: real SQL on a real SQLite file."""

import sqlite3

SCHEMA = """
create table orders (id text primary key, email text, status text);
create table items (
    order_id text, sku text, name text, usd integer, status text, primary key (order_id, sku)
);
create table payments (id integer primary key, order_id text, usd integer);
insert into orders values
    ('W1001', 'ada@example.com', 'pending'),
    ('W1002', 'grace@example.com', 'delivered'),
    ('W1003', 'linus@example.com', 'delivered');
insert into items values
    ('W1001', 'K-1', 'kettle', 39, 'ordered'),
    ('W1001', 'M-1', 'mug', 9, 'ordered'),
    ('W1002', 'G-1', 'grinder', 129, 'delivered'),
    ('W1002', 'M-1', 'mug', 9, 'delivered'),
    ('W1003', 'L-1', 'lamp', 59, 'delivered'),
    ('W1003', 'L-2', 'lamp shade', 25, 'delivered');
insert into payments (order_id, usd) values ('W1001', 48), ('W1002', 138), ('W1003', 84);
"""


class Shop:
    """The tools of the retail desk."""

    def __init__(self, path=":memory:"):
        self.db = sqlite3.connect(path)
        self.db.executescript(SCHEMA)

    def find_order(self, order_id):
        columns = "select email, status from orders where id = ?"
        row = self.db.execute(columns, (order_id,)).fetchone()
        if row is None:
            raise LookupError(f"there is no order {order_id}")
        items = "select sku, name, usd, status from items where order_id = ? order by sku"
        names = ("sku", "name", "usd", "status")
        return {
            "id": order_id,
            "email": row[0],
            "status": row[1],
            "items": [
                dict(zip(names, item, strict=True)) for item in self.db.execute(items, (order_id,))
            ],
        }

    def cancel_order(self, order_id):
        order = self.find_order(order_id)
        if order["status"] != "pending":
            raise ValueError(f"order {order_id} is {order['status']}")
        self.db.execute("update orders set status = 'cancelled' where id = ?", (order_id,))
        self.db.execute("update items set status = 'cancelled' where order_id = ?", (order_id,))
        return self._pay_back(order_id, sum(item["usd"] for item in order["items"]))

    def return_item(self, order_id, sku):
        key = (order_id, sku)
        query = "select usd from items where order_id = ? and sku = ?"
        (usd,) = self.db.execute(query, key).fetchone()
        update = "update items set status = 'returned' where order_id = ? and sku = ?"
        self.db.execute(update, key)
        return self._pay_back(order_id, usd)

    def _pay_back(self, order_id, usd):
        self.db.execute("insert into payments (order_id, usd) values (?, ?)", (order_id, -usd))
        self.db.commit()
        return {"order_id": order_id, "refunded_usd": usd}

    def close(self):
        self.db.close()
