"""The settings of a simulation. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ci_agent_eval.authoring.simulation.conversation import History
from ci_agent_eval.authoring.simulation.judge import ConversationJudge
from ci_agent_eval.authoring.simulation.script_steps import Step, parse_steps
from ci_agent_eval.errors import InputError

DEFAULT_MAX_TURNS = 5
"""Limit of exchanges, the same as Opik's."""

Predicate: TypeAlias = Callable[[History], Any]
"""A sync or async function of the conversation so far; its result is used as a boolean."""


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """The settings of a simulation: arguments of `run_simulation`. Raises InputError."""

    initial_message: str | None = None
    max_turns: int = DEFAULT_MAX_TURNS
    thread_id: str | None = None
    project_name: str | None = None
    tags: tuple[str, ...] = ()
    stop_when: Predicate | None = None
    goal: Predicate | None = None
    steps: Sequence[Step] | None = None
    judge: ConversationJudge | None = None
    app_kwargs: dict[str, Any] = field(default_factory=dict)
    location: tuple[str, int] | None = None
    """File and line of assertions; None: where the test called the simulation."""

    def __post_init__(self) -> None:
        turns = self.max_turns
        if isinstance(turns, bool) or not isinstance(turns, int) or turns < 1:
            raise InputError(
                f"run_simulation: max_turns must be a whole number, 1 or more, got {turns!r}"
            )
        if not isinstance(self.initial_message, str | None):
            raise InputError(
                f"run_simulation: initial_message must be a text, got {self.initial_message!r}"
            )
        _check_predicate("goal", self.goal, "; write a goal in words as SimulatedUser(goal=...)")
        _check_predicate("stop_when", self.stop_when)
        if not isinstance(self.judge, ConversationJudge | None):
            raise InputError(
                f"run_simulation: judge must be a ConversationJudge, got {self.judge!r}"
            )
        if self.steps is not None:
            steps = parse_steps(self.steps, has_judge=self.judge is not None)
            object.__setattr__(self, "steps", steps)
            if self.initial_message is not None:
                raise InputError("run_simulation: give steps or initial_message, not both")


def _check_predicate(name: str, given: object, remedy: str = "") -> None:
    if given is not None and not callable(given):
        raise InputError(
            f"run_simulation: {name} must be a function of the conversation, got {given!r}{remedy}"
        )
