"""What a check is: it turns an episode into assertions with reasons."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, runtime_checkable

from ci_agent_eval.contract.episode import Assertion, Episode


@runtime_checkable
class Check(Protocol):
    """Something that looks at an episode and says what it found."""

    def assertions(
        self, episode: Episode
    ) -> tuple[Assertion, ...] | Awaitable[tuple[Assertion, ...]]:
        """Return an assertion for each thing that was checked, each with its reason: at least one.

        A check that needs a model returns an awaitable of them. One that cannot check
        (a broken judge) raises: it never scores 0 for what is not the agent's fault.
        """
