"""The tools of the support desk: real SQL on a real SQLite database, in memory."""

import sqlite3

SCHEMA = """
create table customers (id integer primary key, email text, street text, modem text);
create table outages (street text, until text);
create table visits (customer_id integer, day text);
"""
CUSTOMERS = [
    (1, "ada@example.com", "Hill Street", "ok"),
    (2, "grace@example.com", "Canal Street", "stuck"),
    (3, "linus@example.com", "Mill Lane", "broken"),
]


class Network:
    def __init__(self):
        self.db = sqlite3.connect(":memory:")
        self.db.executescript(SCHEMA)
        self.db.executemany("insert into customers values (?, ?, ?, ?)", CUSTOMERS)
        self.db.execute("insert into outages values ('Hill Street', '6 pm')")

    def find_customer(self, email):
        rows = self.db.execute("select id, street from customers where email = ?", (email,))
        return next(({"id": number, "street": street} for number, street in rows), None)

    def outage(self, street):
        rows = self.db.execute("select until from outages where street = ?", (street,))
        return next((until for (until,) in rows), None)

    def test_line(self, customer_id):
        rows = self.db.execute("select modem from customers where id = ?", (customer_id,))
        return next(modem for (modem,) in rows)

    def restart_modem(self, customer_id):
        state = "broken" if self.test_line(customer_id) == "broken" else "ok"
        self.db.execute("update customers set modem = ? where id = ?", (state, customer_id))
        return state

    def book_visit(self, customer_id, day):
        self.db.execute("insert into visits values (?, ?)", (customer_id, day))
        return f"booked for {day}"

    def visits(self):
        return self.db.execute("select customer_id, day from visits").fetchall()

    def close(self):
        self.db.close()
