"""What a simulation left behind; a mapping as well, as Opik's `run_simulation` returns one."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ci_agent_eval.authoring.simulation.conversation import (
    SimulationExchange,
    SimulationStop,
    build_history,
)
from ci_agent_eval.contract.trajectory import TokenUsage

KEYS = (
    "thread_id",
    "conversation_history",
    "project_name",
    "tags",
    "stop_reason",
    "turns",
    "last_reply",
)
"""What the result holds as a mapping; Opik's keys first."""


@dataclass(frozen=True, slots=True)
class UserUsage:
    """What a model took to speak for the user; never counted as the agent's."""

    calls: int = 0
    tokens: TokenUsage | None = field(default_factory=TokenUsage)
    """None: a call did not tell."""
    cost_usd: float | None = 0.0
    """None: a call was not priced."""


@dataclass(frozen=True, slots=True, repr=False)
class SimulationResult(Mapping[str, Any]):
    """A conversation of a simulated user with an app, and why it ended.

    `result.thread_id` and `result["thread_id"]` are the same. Awaiting it gives itself.
    """

    thread_id: str
    exchanges: tuple[SimulationExchange, ...]
    """What the user said and what the app replied, in order."""
    stop_reason: SimulationStop
    project_name: str | None = None
    tags: tuple[str, ...] = ()
    user: UserUsage = field(default_factory=UserUsage)
    detail: str | None = None
    """More of the stop reason, where there is more to say."""

    @property
    def conversation_history(self) -> list[dict[str, str]]:
        """Every message as `{"role": ..., "content": ...}`, in order."""
        return build_history(self.exchanges)

    @property
    def turns(self) -> int:
        """How often the app was asked; each is a message of the user and its reply."""
        return len(self.exchanges)

    @property
    def last_reply(self) -> str:
        """The app's last reply; empty where it was never asked."""
        return self.exchanges[-1].reply if self.exchanges else ""

    def __repr__(self) -> str:
        """Say how it ended; pytest shows this beside every assertion on the result."""
        return f"<simulation: {self.stop_reason} after {self.turns} turns>"

    def __getitem__(self, key: str) -> Any:
        if key not in KEYS:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(KEYS)

    def __len__(self) -> int:
        return len(KEYS)

    def __await__(self) -> Generator[Any, None, Self]:
        return self
        yield
