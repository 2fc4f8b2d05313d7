"""Notes about the selected episodes before they run: requirements that they cannot meet.

A note never fails a test: the gate judges the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from ci_agent_eval.analysis.false_alarms import compute_any_chance, compute_shortfall_chance
from ci_agent_eval.analysis.intervals import (
    CONFIDENCE_LEVEL,
    compute_iterations_to_prove,
    compute_wilson_interval,
)
from ci_agent_eval.contract.iteration_range import IterationRange
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.adaptive_iterations import load_plan
from ci_agent_eval.pytest_plugin.collection import iterations
from ci_agent_eval.pytest_plugin.collection.detection import EPISODE, NAME, owns_marker
from ci_agent_eval.pytest_plugin.episodes.marker import is_advisory, read_marker_arguments
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import is_evaluation

_ASSUMED_PASS_RATE = 0.98
"""Pass rate that is assumed of each scenario of an unchanged suite."""

_OFTEN = 0.25
"""Chance of a false alarm from which on a note says so."""

_MAX_NAMES = 3
"""Maximum number of tests that a note names."""


@dataclass
class _ScenarioRequirements:
    """The requirements of all selected tests for one scenario."""

    count: int = 0
    advisory: bool = False
    adaptive: bool = False
    rates: list[float] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)

    def add(self, item: pytest.Item, arguments: Mapping[str, Any]) -> None:
        self.count += 1
        mode = "evaluation" if is_evaluation(item) else "strict"
        self.advisory |= arguments.get("gate") == "advisory" or is_advisory(arguments, mode)
        self.adaptive |= bool(iterations.get_iteration(item).limits.minimum)
        rate, passes = arguments.get("min_pass_rate"), arguments.get("min_passes")
        self.rates += [float(rate)] if isinstance(rate, int | float) else []
        self.passes += [passes] if isinstance(passes, int) else []


def list_notes(items: Sequence[pytest.Item], default: IterationRange) -> Iterator[str]:
    """Yield a sentence for each requirement that this run cannot prove."""
    scenarios: dict[tuple[str, str], _ScenarioRequirements] = {}
    for item in items:
        arguments = _read_arguments(item)
        name = str(arguments.get("scenario_id") or item.stash[EPISODE].scenario_id)
        key = name, str(arguments.get("agent") or "")
        scenarios.setdefault(key, _ScenarioRequirements()).add(item, arguments)
    for (name, agent), scenario in sorted(scenarios.items()):
        title = f"{name} (agent {agent})" if agent else name
        yield from _note_unreachable_passes(title, scenario)
        yield from _note_unprovable_rate(title, scenario)
    yield from _note_false_alarms(list(scenarios.values()), items[0].config)
    yield from _note_unrepeated(items, default)
    yield from _note_foreign_markers(items)
    if options.get_concurrency(items[0].config) > 1:
        from ci_agent_eval.pytest_plugin.concurrency.eligibility import (  # noqa: PLC0415 - inert until used
            build_alone_notes,
        )

        yield from build_alone_notes(items)


def _read_arguments(item: pytest.Item) -> Mapping[str, Any]:
    try:
        return read_marker_arguments(item)
    except InputError:
        return {}  # the item's setup reports the problem with its marker


def _note_unreachable_passes(title: str, scenario: _ScenarioRequirements) -> Iterator[str]:
    needed = max(scenario.passes, default=0)
    if needed > scenario.count:
        runs = pluralize(scenario.count, "iteration")
        yield f"{title}: min_passes {needed} of {runs} cannot be reached; run {needed} or more"


def _note_unprovable_rate(title: str, scenario: _ScenarioRequirements) -> Iterator[str]:
    rate = max(scenario.rates, default=0.0)
    if scenario.count == 1 or not 0 <= rate < 1:
        return
    provable, _ = compute_wilson_interval(scenario.count, scenario.count)
    if provable < rate:
        runs = pluralize(scenario.count, "iteration")
        yield (
            f"{title}: {runs} cannot prove min_pass_rate {rate:g} even if "
            f"all pass (they prove {provable:.3f} at {CONFIDENCE_LEVEL:.0%}); "
            f"{compute_iterations_to_prove(rate)} would be enough"
        )


def _note_false_alarms(
    scenarios: Sequence[_ScenarioRequirements], config: pytest.Config
) -> Iterator[str]:
    """Say that the suite would often fail unchanged; a run with a baseline knows better."""
    if options.get_report_dir(config) is None or options.get_cassette_mode(config) == "replay":
        return
    plan = load_plan(config)
    default_rate = plan.min_pass_rate
    if default_rate is None or plan.predicted:
        return
    required = [s for s in scenarios if not (s.advisory or s.adaptive)]
    chances = [_compute_chance(scenario, default_rate) for scenario in required]
    if (chance := compute_any_chance(chances)) >= _OFTEN:
        yield (
            f"if each of the {len(required)} required scenarios passes "
            f"{_ASSUMED_PASS_RATE:.0%} of the time, an unchanged suite fails in {chance:.0%} of "
            "runs; `agent-eval power` shows which iterations or required rates would do"
        )


def _compute_chance(scenario: _ScenarioRequirements, default_rate: float) -> float:
    rate = max(scenario.rates, default=0.0 if scenario.passes else default_rate)
    share = max([rate, *(passes / scenario.count for passes in scenario.passes)])
    return compute_shortfall_chance(scenario.count, _ASSUMED_PASS_RATE, min(share, 1.0))


def _note_unrepeated(items: Sequence[pytest.Item], default: IterationRange) -> Iterator[str]:
    found = sorted(item.nodeid for item in iterations.find_unrepeated_episodes(items, default))
    if found:
        yield (
            f"run once, not repeated: {_join_names(found)}; pytest repeats neither methods "
            "of unittest.TestCase nor what is marked after collection"
        )


def _note_foreign_markers(items: Sequence[pytest.Item]) -> Iterator[str]:
    marked = [item for item in items if item.get_closest_marker(NAME) is not None]
    ignored = sorted(item.nodeid for item in marked if not owns_marker(item))
    if ignored:
        yield (
            f"the marker `{NAME}` of {_join_names(ignored)} is ignored, for pytest's "
            "setting `markers` names it as the project's own; take it out of there"
        )


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(names[:_MAX_NAMES])}{more}"
