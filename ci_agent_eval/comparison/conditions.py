"""Whether two runs of a scenario may be compared: what each ran under."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ci_agent_eval.comparison.model import Difference
from ci_agent_eval.facts import EpisodeFacts

CONDITIONS = ("model", "tools", "prices", "judge")


def conditions_of(episodes: Iterable[EpisodeFacts]) -> dict[str, tuple[str, ...]]:
    """Return what is known of each condition; what no episode says is not there."""
    found: dict[str, set[str]] = {}
    for facts in episodes:
        for name, value in _said(facts):
            found.setdefault(name, set()).add(value)
    return {name: tuple(sorted(values)) for name, values in found.items()}


def _said(facts: EpisodeFacts) -> Iterator[tuple[str, str]]:
    tools = facts.conditions.tools
    said = {
        "model": facts.model,
        "tools": None if tools is None else ", ".join(sorted(set(tools))) or "none",
        "prices": facts.conditions.prices,
        "judge": facts.conditions.judge,
    }
    for name, value in said.items():
        if value is not None:
            yield name, value


def differences(
    before: dict[str, tuple[str, ...]],
    after: dict[str, tuple[str, ...]],
    across: frozenset[str],
) -> tuple[Difference, ...]:
    """Return the conditions that are known on both sides, differ, and may not."""
    return tuple(
        Difference(name, "; ".join(before[name]), "; ".join(after[name]))
        for name in CONDITIONS
        if name not in across and name in before and name in after and before[name] != after[name]
    )
