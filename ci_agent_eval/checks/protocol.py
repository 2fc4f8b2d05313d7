"""The protocol of checks."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, runtime_checkable

from ci_agent_eval.contract.episode import Assertion, Episode


@runtime_checkable
class Check(Protocol):
    """An object that turns an episode into assertions with reasons."""

    def assertions(
        self, episode: Episode
    ) -> tuple[Assertion, ...] | Awaitable[tuple[Assertion, ...]]:
        """Return at least one assertion, each with its reason.

        A check that needs a model returns an awaitable of them. A check that cannot decide
        (a broken judge) raises instead of returning a score of 0: it is no agent failure.
        """
