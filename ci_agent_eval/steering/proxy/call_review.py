"""Review of the calls of one answer, which never raises and logs each held call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from ci_agent_eval.errors import AgentEvalError
from ci_agent_eval.steering.policy.model import Allow, Decision, Steer, ToolCallRequest
from ci_agent_eval.steering.policy.reactor import FULL_SUITE
from ci_agent_eval.steering.proxy.api import ClientCall

logger = logging.getLogger(__name__)

_NAME_LENGTH = 64


class Reviewer(Protocol):
    """The interface of the reactor."""

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Decision:
        """Decide whether a call may run; `now` is in seconds."""


@dataclass(frozen=True, slots=True)
class CallReview:
    """The review of calls, with its clock."""

    build_reviewer: Callable[[], Reviewer]
    """Returns the reviewer of one answer, in which an intent may occur several times."""
    clock: Callable[[], float]

    def list_messages(self, calls: Iterable[ClientCall], session: str | None) -> dict[str, str]:
        """Return the results of the calls to hold, by their ids."""
        reviewer = self.build_reviewer()
        messages: dict[str, str] = {}
        for call in calls:
            if call.tool is None:
                continue
            request = ToolCallRequest(call.tool, call.arguments)
            decision = self._decide(reviewer, request, session)
            if isinstance(decision, Steer):
                _log_held(decision, call.tool, session)
                # Anthropic's API refuses empty texts.
                is_empty = not decision.message.strip()
                message = f"Held back: {decision.reason}" if is_empty else decision.message
                messages[call.id] = message
        return messages

    def _decide(self, reviewer: Reviewer, call: ToolCallRequest, session: str | None) -> Decision:
        try:
            return reviewer.review(call, session, self.clock())
        except Exception as error:  # noqa: BLE001 - an error of steering must not stop the agent
            # Only log texts of own errors; others may contain the model's answer.
            is_own = isinstance(error, AgentEvalError)
            description = str(error) if is_own else f"unexpected {type(error).__name__}"
            logger.warning("a call goes through unreviewed: %s", description)
            return Allow("the review failed")


def _log_held(decision: Steer, tool: str, session: str | None) -> None:
    """Log a held call without its command, which may contain secrets."""
    is_full_suite = decision.handler == FULL_SUITE
    description = "full-suite pytest command" if is_full_suite else f"call ({decision.handler})"
    name, session_prefix = tool[:_NAME_LENGTH], "unknown" if session is None else session[:8]
    logger.info(
        "Steering %s: held back a call of %r, session %s", description, name, session_prefix
    )
