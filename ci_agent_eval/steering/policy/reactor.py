"""The chain of handlers that a tool call goes through, highest priority first. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ci_agent_eval.steering.policy.model import Allow, Decision, ToolCallRequest


class Handler(Protocol):
    """One opinion on tool calls."""

    @property
    def name(self) -> str:
        """What the handler is called in reports."""

    @property
    def priority(self) -> int:
        """Its place in the chain: higher is earlier."""

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Decision | None:
        """Decide, or leave it to the handlers that follow (None). Must not raise."""


class Reactor:
    """Asks its handlers in turn; the first that decides has decided."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        # Sorting is stable: of equal priorities, the one named first is asked first.
        self.handlers = tuple(sorted(handlers, key=lambda handler: -handler.priority))

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Decision:
        """Say whether a call may run.

        `session` is None where nobody knows it: then nothing is remembered, and a call is held
        back each time it comes. `now` is in seconds, of a clock all users of the memory share.
        """
        for handler in self.handlers:
            decision = handler.review(call, session, now)
            if decision is not None:
                return decision
        return Allow("no handler holds it back")
