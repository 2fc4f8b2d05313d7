"""The result of a simulation; also a mapping, like the result of Opik's `run_simulation`."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ci_agent_eval.authoring.simulation.conversation import (
    History,
    SimulationExchange,
    SimulationStop,
    copy_history,
)
from ci_agent_eval.authoring.simulation.judge import SimulationVerdict
from ci_agent_eval.contract.episode import SideUsage

KEYS = (
    "thread_id",
    "conversation_history",
    "project_name",
    "tags",
    "stop_reason",
    "turns",
    "last_reply",
)
"""Keys of the result as a mapping; Opik's keys first."""


@dataclass(frozen=True, slots=True, repr=False)
class SimulationResult(Mapping[str, Any]):
    """A conversation of a simulated user with an app, and why it ended.

    `result.thread_id` and `result["thread_id"]` are the same. Awaiting a result returns it.
    """

    thread_id: str
    exchanges: tuple[SimulationExchange, ...]
    """The user's messages and the app's replies, in order."""
    stop_reason: SimulationStop
    project_name: str | None = None
    tags: tuple[str, ...] = ()
    user: SideUsage = field(default_factory=lambda: SideUsage(cost_usd=0.0))
    """Usage of the model that plays the user; never counted as the agent's."""
    detail: str | None = None
    """Details of the stop reason, if there are any."""
    verdict: SimulationVerdict | None = None
    """The judge's verdict; None without a judge, or if the agent stopped."""
    messages: tuple[dict[str, Any], ...] = field(default=(), compare=False)

    @property
    def conversation_history(self) -> History:
        """Every message as `{"role": ..., "content": ...}`, in order."""
        return copy_history(list(self.messages))

    @property
    def turns(self) -> int:
        """Number of exchanges: a message of the user and its reply."""
        return len(self.exchanges)

    @property
    def last_reply(self) -> str:
        """The app's last reply; empty if it was never asked."""
        return self.exchanges[-1].reply if self.exchanges else ""

    def __repr__(self) -> str:
        """Describe the end; pytest shows it for failed assertions on the result."""
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
