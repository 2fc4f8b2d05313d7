"""Selection of the attempt that decides an iteration's outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar

from ci_agent_eval.contract.episode import Outcome

PassedOnRetry = Literal["passed", "flaky", "failed"]
"""Result of a test that failed and then passed on a retry; "flaky" passes and is listed."""


class _HasOutcome(Protocol):
    @property
    def outcome(self) -> Outcome: ...


_Attempt = TypeVar("_Attempt", bound=_HasOutcome)


def get_decisive_attempt(attempts: Sequence[_Attempt]) -> _Attempt:
    """Return the last attempt that passed or failed, else the last one.

    A retry that is skipped or ends in an error does not erase a failure.
    """
    judged = [attempt for attempt in attempts if attempt.outcome in {"passed", "failed"}]
    return (judged or attempts)[-1]
