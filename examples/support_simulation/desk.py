"""An internet provider's support desk. Its policy is SCRIPTED: rules where a product has a model.

The tools are real, and so is the state that lives from message to message: one for each
thread, as an app keeps it that serves many customers at once.
"""

import re

YES = re.compile(r"\b(yes|please do|go ahead)\b", re.IGNORECASE)
EMAIL = re.compile(r"[\w.]+@[\w.]*\w")
DAY = re.compile(r"\b(Monday|Tuesday|Wednesday|Thursday|Friday)\b", re.IGNORECASE)


class SupportDesk:
    """`desk(message, thread_id=...)` answers one message; `think` is told each step's name."""

    def __init__(self, network, think=lambda step: None):
        self.network = network
        self.think = think
        self.threads = {}

    def __call__(self, message, *, thread_id):
        self.think("read")
        thread = self.threads.setdefault(thread_id, {"asked": None, "customer": None})
        calls = []
        text = self._answer(message, thread, calls)
        return {"role": "assistant", "content": text, "tool_calls": calls, "source": "scripted"}

    def _answer(self, message, thread, calls):
        if "opening hours" in message.lower():
            return "We are here from 8 am to 8 pm, every day."
        if found := EMAIL.search(message):
            return self._diagnose(found[0], thread, calls)
        if thread["customer"] is None:
            return "I am sorry to hear that. What is the e-mail address of your account?"
        if thread["asked"] == "restart" and YES.search(message):
            return self._restart(thread, calls)
        if thread["asked"] == "day" and (day := DAY.search(message)):
            return self._visit(day[0].capitalize(), thread, calls)
        return "All right. Is there anything else?"

    def _diagnose(self, email, thread, calls):
        customer = self._use(calls, "find_customer", email=email)
        if customer is None:
            return f"I find no account of {email}. Could it be another address?"
        thread["customer"] = customer
        until = self._use(calls, "outage", street=customer["street"])
        if until is not None:
            return f"There is an outage in {customer['street']}; it will be mended by {until}."
        if self._use(calls, "test_line", customer_id=customer["id"]) == "ok":
            return "Your line is fine. Is there anything else?"
        thread["asked"] = "restart"
        return "Your modem does not answer. Shall I restart it? You will be offline for a minute."

    def _restart(self, thread, calls):
        state = self._use(calls, "restart_modem", customer_id=thread["customer"]["id"])
        if state == "ok":
            thread["asked"] = None
            return "Done: your modem is back, and the line is fine."
        thread["asked"] = "day"
        return "It did not help, so a technician has to come. Which day suits you?"

    def _visit(self, day, thread, calls):
        self._use(calls, "book_visit", customer_id=thread["customer"]["id"], day=day)
        thread["asked"] = None
        return f"A technician will come on {day}."

    def _use(self, calls, name, **arguments):
        self.think(name)
        result = getattr(self.network, name)(**arguments)
        calls.append({"name": name, "arguments": arguments, "result": result})
        return result
