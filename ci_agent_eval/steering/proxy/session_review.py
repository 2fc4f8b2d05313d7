"""Review of calls that never raises, with a log line for each steered call."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ci_agent_eval.errors import AgentEvalError
from ci_agent_eval.steering.policy.handlers import FULL_SUITE
from ci_agent_eval.steering.policy.model import Allow, Decision, Steer, ToolCallRequest
from ci_agent_eval.steering.proxy.reviewed_calls import SessionReview

logger = logging.getLogger(__name__)

_NAME_LENGTH = 64


class Reviewer(Protocol):
    """The interface of the reactor."""

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Decision:
        """Decide whether a call may run; `now` is in seconds."""


@dataclass(frozen=True, slots=True)
class ProxyReview:
    """The review of calls, with its tool filter and clock."""

    build_reviewer: Callable[[], Reviewer]
    """Returns the reviewer of one answer, in which an intent may occur several times."""
    is_steerable: Callable[[str], bool]
    clock: Callable[[], float]

    def for_session(self, session: str | None) -> SessionReview:
        """Return the review for the calls of one answer in a session."""
        reviewer = self.build_reviewer()
        return SessionReview(lambda call: self._decide(reviewer, call, session), self.is_steerable)

    def _decide(self, reviewer: Reviewer, call: ToolCallRequest, session: str | None) -> Decision:
        try:
            decision = reviewer.review(call, session, self.clock())
        except Exception as error:  # noqa: BLE001 - an error of steering must not stop the agent
            # Only log texts of own errors; others may contain the model's answer.
            is_own = isinstance(error, AgentEvalError)
            description = str(error) if is_own else f"unexpected {type(error).__name__}"
            logger.warning("a call goes through unreviewed: %s", description)
            return Allow("the review failed")
        if isinstance(decision, Steer):
            _log_steered(decision, call, session)
        return decision


def _log_steered(decision: Steer, call: ToolCallRequest, session: str | None) -> None:
    """Log a steered call without its command, which may contain secrets."""
    is_full_suite = decision.handler == FULL_SUITE
    description = "full-suite pytest command" if is_full_suite else f"call ({decision.handler})"
    name, session_prefix = call.tool[:_NAME_LENGTH], "unknown" if session is None else session[:8]
    logger.info(
        "Steering %s: held back a call of %r, session %s", description, name, session_prefix
    )
