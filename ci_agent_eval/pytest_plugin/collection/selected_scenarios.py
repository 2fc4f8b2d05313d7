"""`--episode-scenario`: selection of scenarios by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import pytest

from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.removed_episodes import build_collected_episode


def select_scenarios(items: list[pytest.Item], wanted: Sequence[str]) -> list[pytest.Item]:
    """Keep the episodes of the scenarios; return the other items.

    Raises pytest.UsageError for a scenario that no collected test has. Tests that name their
    scenario at run time are known by their node ids.
    """
    found = {id(item): _get_scenario(item) for item in items}
    for scenario in wanted:
        if scenario not in found.values():
            raise pytest.UsageError(
                f"--episode-scenario: no collected test has the scenario {scenario!r}; "
                f"{_suggest_scenario(scenario, filter(None, found.values()))}"
            )
    others = [item for item in items if found[id(item)] not in wanted]
    items[:] = [item for item in items if found[id(item)] in wanted]
    return others


def _suggest_scenario(wanted: str, known: Iterable[str]) -> str:
    """Return a hint with the scenario of the nearest id, or of the nearest test name."""
    ids = {name: one for one in sorted(known) for name in (one.rpartition("::")[2], one)}
    nearest = get_close_matches(wanted, ids, n=1)
    if nearest:
        return f"did you mean {ids[nearest[0]]!r}?"
    return "its id is in the report, and pytest --collect-only lists the tests"


def _get_scenario(item: pytest.Item) -> str | None:
    return build_collected_episode(item).scenario_id if detection.is_episode(item) else None
