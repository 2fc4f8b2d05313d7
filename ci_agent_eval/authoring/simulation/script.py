"""The messages of a scripted user: fixed responses in a cycle, or a script until its end."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from ci_agent_eval.authoring.simulation.awaiting import await_if_needed
from ci_agent_eval.authoring.simulation.judge import ConversationJudge
from ci_agent_eval.authoring.simulation.result import History, SimulationStop, find_last_reply
from ci_agent_eval.authoring.simulation.script_steps import Step, parse_steps
from ci_agent_eval.contract.fields import Count, validate_value
from ci_agent_eval.errors import InputError

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

ScriptEntry: TypeAlias = str | Callable[[str], Any] | Mapping[str, str]
"""A message, a function of the app's last reply, or rules (pattern in that reply → message)."""


class SimulationEnd(NamedTuple):
    """The reason why a simulation ends."""

    reason: SimulationStop
    detail: str | None = None


async def get_fixed_message(responses: Sequence[str], number: int) -> str:
    """Return the user's message by number (from 0), in a cycle."""
    return responses[number % len(responses)]


async def get_script_message(
    script: Sequence[ScriptEntry], number: int, history: History
) -> str | SimulationEnd:
    """Return the message of a script's entry (from 0) for the last reply."""
    if number >= len(script):
        return SimulationEnd("script_ended")
    entry, reply = script[number], find_last_reply(history)
    if isinstance(entry, str):
        return entry
    if isinstance(entry, Mapping):
        return _match_rules(entry, number, reply)
    message = await await_if_needed(entry(reply))
    if message is not None and not isinstance(message, str):
        kind = type(message).__name__
        raise InputError(
            f"SimulatedUser.script[{number}]: it returned a {kind}; return a text, or None to leave"
        )
    return SimulationEnd("script_ended") if message is None else message


def _match_rules(rules: Mapping[str, str], number: int, reply: str) -> str | SimulationEnd:
    for pattern, message in rules.items():
        if re.search(pattern, reply, re.IGNORECASE):
            return message
    known = ", ".join(repr(pattern) for pattern in rules)
    return SimulationEnd("off_script", f"entry {number + 1} of the script answers {known} only")


def parse_responses(given: object) -> tuple[str, ...]:
    """Return fixed responses as a tuple. Raises InputError."""
    texts = _require_list("fixed_responses", given)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"SimulatedUser.fixed_responses[{number}]: must be a text")
    return texts


def parse_script(given: object) -> tuple[ScriptEntry, ...]:
    """Return a script as a tuple. Raises InputError, which names the entry."""
    entries = _require_list("script", given)
    for number, entry in enumerate(entries):
        _require_entry(f"SimulatedUser.script[{number}]", entry)
    return entries


def _require_list(name: str, given: object) -> tuple[Any, ...]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise InputError(f"SimulatedUser.{name}: must be a list, got a {type(given).__name__}")
    return tuple(given)


def _require_entry(where: str, entry: object) -> None:
    if isinstance(entry, str) or callable(entry):
        return
    if not isinstance(entry, Mapping) or not entry:
        raise InputError(f"{where}: must be a text, a function of the last reply, or rules")
    for pattern, message in entry.items():
        require_rule(where, pattern, message)


def require_rule(where: str, pattern: object, message: object) -> None:
    """Raise InputError unless a rule is a regular expression with a message."""
    if not isinstance(pattern, str) or not isinstance(message, str):
        raise InputError(f"{where}: a rule is a pattern and a message, both texts")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InputError(f"{where}: {pattern!r} is not a regular expression: {error}") from None


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
        validate_value("run_simulation", "max_turns", Count, self.max_turns)
        validate_value("run_simulation", "initial_message", str | None, self.initial_message)
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
