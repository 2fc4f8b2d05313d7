"""The type of the fixture `aitest_run`, for annotations in tests."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ci_agent_eval.engine import AgentResult, SteeringSettings


class AgentRunner(Protocol):
    """The fixture `aitest_run`: runs agents, whose turns become the test's episode."""

    async def __call__(
        self,
        agent: object,
        prompt: str | Sequence[Any],
        *,
        messages: Sequence[Any] | None = None,
        max_turns: int | None = None,
        timeout_s: float | None = 60.0,
        timeout_ms: float | None = None,
        raises: bool = True,
        steering: SteeringSettings | None = None,
        allowed_stops: str | Collection[str] = (),
    ) -> AgentResult:
        """Run an agent and record its turns in the episode, within the episode's hard budgets.

        A run that ends with an infrastructure error raises, unless `raises` is False.
        """
