"""Records of test runs: full runs that were held, full runs that ran, and targeted runs. Pure."""

from __future__ import annotations

from typing import Literal, Protocol

from ci_agent_eval.steering.policy.model import ToolCallRequest

CallKind = Literal["held", "insisted", "targeted"]
"""A full run that was held, a full run that was repeated and ran, a targeted run."""


class CallLedger(Protocol):
    """A record of the test runs of sessions."""

    def record_call(self, session: str, call: ToolCallRequest, kind: CallKind, now: float) -> None:
        """Record a call at `now`, in seconds of a clock shared by all users of the record."""


class EmptyLedger:
    """A ledger that records nothing."""

    def record_call(self, session: str, call: ToolCallRequest, kind: CallKind, now: float) -> None:
        """Do nothing."""


NO_LEDGER = EmptyLedger()
