"""Which of several attempts at the same iteration is the one that counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar

from ci_agent_eval.contract.episode import Outcome

PassedOnRetry = Literal["passed", "flaky", "failed"]
"""How a test counts that failed and passed on a retry; flaky: it passes, and is listed."""


class _HasOutcome(Protocol):
    @property
    def outcome(self) -> Outcome: ...


_Attempt = TypeVar("_Attempt", bound=_HasOutcome)


def get_decisive_attempt(attempts: Sequence[_Attempt]) -> _Attempt:
    """Return the last attempt that was judged: a retry that skips or errs erases no failure."""
    judged = [attempt for attempt in attempts if attempt.outcome in {"passed", "failed"}]
    return (judged or attempts)[-1]
