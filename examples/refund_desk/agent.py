"""The refund desk's agent. Its policy is SCRIPTED: rules where a product has a model.

Everything around the rules is real: the tools, the database, the state that lives
from turn to turn. The rules hold two mistakes of the kind a prompt change brings in,
so that the report has something to show.
"""

import re
from dataclasses import dataclass, field

MANAGER_LIMIT_CENTS = 50_000


@dataclass
class Call:
    name: str
    arguments: dict
    result: object


@dataclass
class Reply:
    text: str
    calls: list[Call] = field(default_factory=list)


class RefundDesk:
    """Talks to one customer; `think` is called before each step, with its name."""

    def __init__(self, orders, think=lambda step: None):
        self.orders = orders
        self.think = think
        self.pending = None

    def respond(self, message):
        self.think("read")
        reply = Reply("")
        reply.text = self._answer(message.lower(), reply)
        return reply

    def _answer(self, message, reply):
        if self.pending and re.search(r"\byes\b", message):
            return self._refund(self.pending, reply)
        if number := re.search(r"\b(\d{4})\b", message):
            return self._consider(int(number[1]), message, reply)
        if email := re.search(r"\S+@[\w.]*\w", message):
            return self._find(email[0], message, reply)
        return "Which order is it about? The order number or your e-mail address will do."

    def _consider(self, order_id, message, reply):
        order = self._use(reply, "lookup_order", order_id=order_id)
        if order is None:
            return f"I cannot find order {order_id}."
        # Mistake 1: an urgent customer is not worth a manager's minute.
        if order.price_cents > MANAGER_LIMIT_CENTS and "urgent" not in message:
            self._use(reply, "ask_manager", order_id=order.id, amount_cents=order.price_cents)
        self.pending = order
        return f"Your {order.item} was {order.price_cents / 100:.2f} dollars. Shall I refund it?"

    def _find(self, email, message, reply):
        # Mistake 2: every order is looked up, though the customer named the item.
        ids = self._use(reply, "list_order_ids", email=email)
        orders = [self._use(reply, "lookup_order", order_id=order_id) for order_id in ids]
        named = [order for order in orders if order.item in message]
        if not named:
            return "Which of your orders is it about?"
        return self._refund(named[0], reply)

    def _refund(self, order, reply):
        self._use(reply, "issue_refund", order_id=order.id, amount_cents=order.price_cents)
        self.pending = None
        return f"Done: {order.price_cents / 100:.2f} dollars for the {order.item} are on their way."

    def _use(self, reply, name, **arguments):
        self.think(name)
        result = getattr(self.orders, name)(**arguments)
        reply.calls.append(Call(name, arguments, result))
        return result
