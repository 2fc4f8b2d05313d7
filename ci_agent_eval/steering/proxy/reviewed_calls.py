"""The calls of one response: each is reviewed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ci_agent_eval.steering.policy.model import Decision, Steer, ToolCallRequest
from ci_agent_eval.steering.proxy.sse import render_compact_json


@dataclass(frozen=True, slots=True)
class SessionReview:
    """Whom the rewriting asks."""

    review: Callable[[ToolCallRequest], Decision]
    concerns: Callable[[str], bool] = lambda _tool: True
    """May a call of this tool be steered at all? Calls of other tools are not held."""


@dataclass(slots=True)
class ReviewedCalls:
    """Asks about the calls of one response.

    A call that stands twice in one response is asked about once: the second is no second
    attempt, since the model has not yet heard of the first.
    """

    gate: SessionReview
    _known: dict[tuple[str, bytes], str | None] = field(default_factory=dict)

    def concerns(self, tool: str) -> bool:
        """Return whether a call of this tool has to be held until it is complete."""
        return self.gate.concerns(tool)

    def message(self, tool: str, arguments: object) -> str | None:
        """Return what the client gets in place of this call; None: the call itself."""
        if not self.concerns(tool):
            return None
        key = (tool, render_compact_json(arguments))
        if key not in self._known:
            self._known[key] = self._asked(ToolCallRequest(tool, arguments))
        return self._known[key]

    def _asked(self, call: ToolCallRequest) -> str | None:
        decision = self.gate.review(call)
        if not isinstance(decision, Steer):
            return None
        # An empty text block is refused by Anthropic's API when it comes back in the history.
        return decision.message if decision.message.strip() else f"Held back: {decision.reason}"


def append_message(text: object, message: str) -> str:
    """Return `message` after the text that stands before it."""
    return f"{text}\n\n{message}" if isinstance(text, str) and text else message
