"""The chain of handlers that review a tool call, highest priority first. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ci_agent_eval.steering.policy.model import Allow, Decision, ToolCallRequest


class Handler(Protocol):
    """A reviewer of tool calls in the chain."""

    @property
    def name(self) -> str:
        """The handler's name in reports."""

    @property
    def priority(self) -> int:
        """Its position in the chain: higher is earlier."""

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Decision | None:
        """Return a decision, or None to defer to later handlers. Must not raise."""


class Reactor:
    """Asks its handlers in order and returns the first decision."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        # Sorting is stable: equal priorities keep their order.
        self.handlers = tuple(sorted(handlers, key=lambda handler: -handler.priority))

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Decision:
        """Decide whether a call may run.

        `session` is None if unknown: then nothing is remembered and a call is steered each
        time. `now` is in seconds, of a clock shared by all users of the memory.
        """
        for handler in self.handlers:
            decision = handler.review(call, session, now)
            if decision is not None:
                return decision
        return Allow("no handler holds it back")
