"""`--episode-plan`: leave out carried-over episodes, and run the others in the plan's order.

Only `agent-eval` gives the option, with a file of the plan. Every process of a run computes the
same from it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import CarriedScenario
from ci_agent_eval.contract.run_plan import RunPlan
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.dependencies.environment import (
    compute_installation_digest,
    get_platform,
    get_python_version,
    hash_distributions,
    hash_variable,
    is_always_read,
)
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.iterations import is_optional
from ci_agent_eval.pytest_plugin.collection.removed_episodes import build_collected_episode


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    """The episodes that a plan left out of a collection."""

    carried: tuple[CarriedScenario, ...] = ()

    def describe(self) -> str:
        """Return a sentence about the scenarios that do not run; empty if there are none."""
        number = pluralize(len(self.carried), "unchanged scenario")
        return f"{number}: earlier results count" if self.carried else ""


def apply_run_plan(config: pytest.Config, items: list[pytest.Item]) -> Sequence[pytest.Item]:
    """Leave out the items that need not run, and order the others; return those left out.

    The stash notes the result under `options.APPLIED_PLAN`.
    """
    plan = RunPlan.model_validate_json(Path(str(config.option.episode_plan)).read_bytes())
    episodes = {id(item): _build_episode(item) for item in items}

    def find_scenario(item: pytest.Item) -> str | None:
        found = episodes[id(item)]
        return None if found is None else found.scenario_id

    unchanged = find_unchanged_scenarios(plan, os.environ)
    carried = [item for item in items if find_scenario(item) in unchanged]
    config.stash[options.APPLIED_PLAN] = AppliedPlan(
        tuple(_list_carried((item, episodes[id(item)]) for item in carried))
    )
    left_out = set(map(id, carried))
    left = [item for item in items if id(item) not in left_out]
    items[:] = _order_items(left, plan, find_scenario)
    return carried


def _build_episode(item: pytest.Item) -> Episode | None:
    """Return the episode of an item; None: it has none, or its test names the scenario later."""
    if not detection.is_episode(item) or detection.returns_episode(item):
        return None
    return build_collected_episode(item)


def find_unchanged_scenarios(plan: RunPlan, environ: Mapping[str, str]) -> frozenset[str]:
    """Return the scenarios whose results this process may carry over.

    None of them in another environment than the earlier run's, and none whose variables differ.
    """
    if not plan.unchanged or plan.environment is None or plan.environment != _compute_environment():
        return frozenset()
    if any(is_always_read(name) and name not in plan.variables for name in environ):
        return frozenset()  # such as a new PYTHONOPTIMIZE
    changed = {
        name
        for one in plan.unchanged
        for name in one.variables
        if name not in plan.variables
        or plan.variables[name] != hash_variable(name, environ.get(name))
    }
    return frozenset(one.scenario_id for one in plan.unchanged if changed.isdisjoint(one.variables))


def _compute_environment() -> str:
    return compute_installation_digest(get_python_version(), get_platform(), hash_distributions())


def _list_carried(
    items: Iterable[tuple[pytest.Item, Episode | None]],
) -> Iterator[CarriedScenario]:
    """Yield the carried-over scenarios by id, with the iterations that would certainly have run."""
    iterations: dict[str, int] = defaultdict(int)
    required: set[str] = set()
    for item, episode in items:
        assert episode is not None, "only episodes have a scenario"  # noqa: S101 - see _build_episode
        iterations[episode.scenario_id] += not is_optional(item)
        if episode.gate == "required":
            required.add(episode.scenario_id)
    for name, number in sorted(iterations.items()):
        gate = "required" if name in required else "advisory"
        yield CarriedScenario.model_validate(
            {"scenario_id": name, "gate": gate, "iterations": number}
        )


def _order_items(
    items: list[pytest.Item], plan: RunPlan, find_scenario: Callable[[pytest.Item], str | None]
) -> list[pytest.Item]:
    """Run new scenarios first, then `plan.first`; fixtures may be set up twice for it."""
    known = frozenset(plan.known)
    places = {name: place for place, name in enumerate(plan.first)}

    def get_rank(item: pytest.Item) -> int:
        scenario = find_scenario(item)
        if scenario is None:
            return len(places)
        return -1 if known and scenario not in known else places.get(scenario, len(places))

    return sorted(items, key=get_rank)
