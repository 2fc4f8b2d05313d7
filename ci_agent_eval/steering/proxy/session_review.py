"""The asking: a reviewer that cannot fail, and a line in the log for each call that is held."""

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
    """Who decides: the reactor."""

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Decision:
        """Say whether a call may run; `now` in seconds."""


@dataclass(frozen=True, slots=True)
class ProxyReview:
    """Who is asked about the calls of a session, by which clock."""

    reviewer: Reviewer
    concerns: Callable[[str], bool]
    clock: Callable[[], float]

    def gate(self, session: str | None) -> SessionReview:
        """Return what the rewriting of one answer asks."""
        return SessionReview(lambda call: self._decision(call, session), self.concerns)

    def _decision(self, call: ToolCallRequest, session: str | None) -> Decision:
        try:
            decision = self.reviewer.review(call, session, self.clock())
        except Exception as error:  # noqa: BLE001 - a fault in steering stops nobody's work
            # A sentence of ours may be shown; what others say may hold what the model said.
            ours = isinstance(error, AgentEvalError)
            what = str(error) if ours else f"unexpected {type(error).__name__}"
            logger.warning("a call goes through unreviewed: %s", what)
            return Allow("the review failed")
        if isinstance(decision, Steer):
            _log_steered(decision, call, session)
        return decision


def _log_steered(decision: Steer, call: ToolCallRequest, session: str | None) -> None:
    """Say what was held back: not the command, which may hold secrets."""
    full = decision.handler == FULL_SUITE
    what = "full-suite pytest command" if full else f"call ({decision.handler})"
    name, known = call.tool[:_NAME_LENGTH], "unknown" if session is None else session[:8]
    logger.info("Steering %s: held back a call of %r, session %s", what, name, known)
