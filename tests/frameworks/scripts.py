"""What the model server answers, in the words that a framework expects."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.model_server import ModelServer, gemini
from tests.model_server.script import Script, Step, call, completion

BALANCE = {"account": "checking", "dollars": 1500.0}
USAGE = {"input": 100, "output": 20, "cached": 40}
_numbers = itertools.count(1)


class Scripts:
    """Adds conversations to the server; each has a prompt of its own."""

    def __init__(self, server: ModelServer, framework: str) -> None:
        self.server = server
        self.framework = framework

    def add(self, *steps: Any) -> str:
        """Add a conversation and return its prompt."""
        key = f"conversation {next(_numbers):04}."
        self.server.script.extend(Script({key: [self._with_usage(step) for step in steps]}))
        return f"How much is on checking? In {key}"

    def count_requests(self, prompt: str) -> int:
        """Return how many requests of a conversation the server got."""
        key = prompt.rpartition(" In ")[2]
        return sum(key in json.dumps(asked.body) for asked in self.server.requests)

    def final(self, text: str) -> Step:
        """A final answer."""
        if self.framework == "smolagents":
            return Step(tool_calls=[call("final_answer", answer=text)])
        return Step(text=text)

    def balance(self) -> Sequence[Step]:
        """A call of the tool, then the answer."""
        return Step(tool_calls=[call("get_balance", account="checking")]), self.final("$1,500.00.")

    def typed(self) -> Sequence[Step]:
        """A typed output, as a text or as the call of the tool that carries it."""
        if self.framework == "strands":
            return (Step(tool_calls=[call("Balance", **BALANCE)]), Step(text="Done."))
        text = Step(text=json.dumps(BALANCE))
        return text, text

    def broken_tool(self) -> Sequence[Step]:
        """A call of the tool that raises, then an answer."""
        closing = Step(tool_calls=[call("close_account", account="checking")])
        if self.framework == "smolagents":  # its next request has no message for the failed call
            closing = Step(body=json.dumps(completion(self._with_usage(closing), "gpt-5-mini", 1)))
        return closing, self.final("I could not.")

    def hand_over(self, name: str, arguments: Mapping[str, str]) -> Sequence[Step]:
        """A call that hands over or asks another agent, then the answers of both."""
        asked = self.add(self.final("$1,500.00."))
        given = {key: asked if value == "QUESTION" else value for key, value in arguments.items()}
        handing = Step(tool_calls=[call(name, **given)])
        if self.framework == "google_adk":  # the next agent gets the call as a text of the user
            handing = Step(body=json.dumps(gemini.answer(self._with_usage(handing), "gemini", 1)))
        return handing, self.final("$1,500.00."), self.final("$1,500.00.")

    def _with_usage(self, step: Any) -> Step:
        return Step(**{**Step.parse(step).__dict__, "usage": USAGE})
