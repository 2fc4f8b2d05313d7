"""The trajectory diff: which scenarios took another way, and both ways before they are escaped."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.analysis.comparison.model import (
    Comparison,
    Divergence,
    ScenarioChange,
    ScenarioComparison,
)
from ci_agent_eval.render.escape import visible_line
from ci_agent_eval.render.numbers import count, counted

MOST_STEPS = 40
"""Most tool calls of a sequence that a comment shows."""
MOST_DETOURS = 10
"""Most scenarios of which a comment tells that they pass by another way."""

_STEP_LIMIT = 200
"""Characters of a tool's name and argument in a sequence."""

_TURNED: tuple[ScenarioChange, ...] = ("newly_failing", "still_failing", "fixed")

Ways = tuple[Sequence[str], Sequence[str]]


def shifted(found: Comparison) -> Sequence[ScenarioComparison]:
    """Return the scenarios that changed and take another way, what is worse first.

    They changed where they fail or were fixed, where their pass rate fell or may have fallen,
    and where they are newly over a budget.
    """
    return sorted((s for s in found.scenarios if s.divergence and has_changed(s)), key=_weight)


def detours(found: Comparison) -> Sequence[ScenarioComparison]:
    """Return the scenarios that stayed as they were, but take another way."""
    return [s for s in found.scenarios if s.divergence and not has_changed(s)]


def has_changed(scenario: ScenarioComparison) -> bool:
    """Say whether a reader should see what it did otherwise."""
    is_doubted = scenario.call in {"regression", "undecided"}
    return scenario.change in _TURNED or is_doubted or bool(scenario.newly_over)


def _weight(scenario: ScenarioComparison) -> int:
    ranks = (
        scenario.change == "newly_failing",
        scenario.call == "regression",
        scenario.call == "undecided",
        bool(scenario.newly_over),
        scenario.change == "still_failing",
    )
    return ranks.index(True) if True in ranks else len(ranks)


def ways_of(parted: Divergence) -> Ways:
    """Return both sequences of tool calls, the argument that differs at the call that has it."""
    return (
        _with_argument(parted, parted.before, parted.argument_before),
        _with_argument(parted, parted.after, parted.argument_after),
    )


def _with_argument(parted: Divergence, names: Sequence[str], value: str | None) -> Sequence[str]:
    at = parted.call - 1
    is_told = parted.argument_before is not None or parted.argument_after is not None
    if not is_told or at >= len(names):
        return names
    given = "" if value is None else f"{parted.argument}={value}"
    return (*names[:at], f"{names[at]}({given})", *names[at + 1 :])


def place_of(parted: Divergence) -> str:
    """Say in which call of which turn the ways part, in our own words."""
    if not parted.call_of_turn:
        return f"turn {count(parted.turn)}"
    return f"tool call {count(parted.call_of_turn)} of turn {count(parted.turn)}"


def sequence(names: Sequence[str], call: int, arrow: str) -> str:
    """Return tool calls on one line; of a long sequence the part where it leaves the other."""
    start = max(0, min(call - MOST_STEPS // 2, len(names) - MOST_STEPS))
    shown = [visible_line(name, _STEP_LIMIT) for name in names[start : start + MOST_STEPS]]
    if start:
        shown.insert(0, f"… ({counted(start, 'call')} before)")
    if (rest := len(names) - start - MOST_STEPS) > 0:
        shown.append(f"… ({count(rest)} more)")
    return arrow.join(shown) or "(no tool call)"
