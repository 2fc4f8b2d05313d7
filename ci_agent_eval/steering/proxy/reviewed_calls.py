"""Review of the calls in one response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import render_compact_json
from ci_agent_eval.steering.policy.model import Decision, Steer, ToolCallRequest


@dataclass(frozen=True, slots=True)
class SessionReview:
    """The review of one session's calls."""

    review: Callable[[ToolCallRequest], Decision]
    is_steerable: Callable[[str], bool] = lambda _tool: True
    """Returns whether calls of a tool may be steered; calls of other tools are not held."""


@dataclass(slots=True)
class ReviewedCalls:
    """Reviews the calls of one response, each distinct call once.

    A call repeated in one response is no second attempt, because the model has not yet seen the
    answer to the first.
    """

    session_review: SessionReview
    _known: dict[tuple[str, bytes], str | None] = field(default_factory=dict)

    def is_steerable(self, tool: str) -> bool:
        """Return whether a call of this tool must be held until it is complete."""
        return self.session_review.is_steerable(tool)

    def get_message(self, tool: str, arguments: object) -> str | None:
        """Return the result of a held call; None if the call goes through."""
        if not self.is_steerable(tool):
            return None
        key = (tool, render_compact_json(arguments))
        if key not in self._known:
            self._known[key] = self._review(ToolCallRequest(tool, arguments))
        return self._known[key]

    def _review(self, call: ToolCallRequest) -> str | None:
        decision = self.session_review.review(call)
        if not isinstance(decision, Steer):
            return None
        # Anthropic's API refuses empty texts.
        return decision.message if decision.message.strip() else f"Held back: {decision.reason}"
