"""The retail desk's agent. Its policy is SCRIPTED: rules where a product has a model.

The tools and the database are real. The rules hold a mistake of the kind that no answer shows:
the agent says the right sentence, and does too much.
"""

import re


class RetailDesk:
    """Talks to one customer; `use` calls a tool by its name."""

    def __init__(self, use):
        self.use = use
        self.pending = None

    def respond(self, message):
        if not message:
            return "Welcome to the shop. What can I do for you?"
        text = message.lower()
        if self.pending and re.search(r"\byes\b", text):
            act, self.pending = self.pending, None
            return act()
        number = re.search(r"\bW\d{4}\b", message)
        if not number:
            return "Which order is it about?"
        try:
            order = self.use("find_order", order_id=number[0])
        except RuntimeError:
            return "Our order system does not answer. Please ask again."
        return self._serve(order, text)

    def _serve(self, order, text):
        if "cancel" in text:
            self.pending = lambda: self._cancel(order)
            return f"Order {order['id']} is {order['status']}. Shall I cancel it?"
        if "return" in text:
            named = [item for item in order["items"] if item["name"] in text]
            self.pending = lambda: self._return(order, named[0])
            return f"The {named[0]['name']} was ${named[0]['usd']}. Shall I take it back?"
        return f"Order {order['id']} is {order['status']}."

    def _cancel(self, order):
        done = self.use("cancel_order", order_id=order["id"])
        return f"Order {order['id']} is cancelled, and ${done['refunded_usd']} are on their way."

    def _return(self, order, item):
        # Mistake: the name of one item may be a part of another one's.
        for each in order["items"]:
            if item["name"] in each["name"]:
                self.use("return_item", order_id=order["id"], sku=each["sku"])
        return f"Please send the {item['name']} back; ${item['usd']} are on their way."
