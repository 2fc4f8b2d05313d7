"""The adaptive iterations of one process: which of them run, and why each scenario stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ci_agent_eval.analysis.adaptive_iterations import (
    Demands,
    IterationCounts,
    PredictedRate,
    find_stop,
)
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.iteration_range import IterationRange
from ci_agent_eval.contract.results import AdaptivePlan, AdaptiveStop, StopCause
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.iterations import get_iteration, get_scenario_unit
from ci_agent_eval.pytest_plugin.parts import get_parts


@dataclass(slots=True)
class _AdaptiveScenario:
    """The outcomes of a scenario in this process."""

    limits: IterationRange
    """Of each of its tests."""
    allowed: int
    """Highest number of an iteration that may run."""
    tests: int = 0
    """Number of its tests; each runs once in a round."""
    identity: tuple[str, str | None] | None = None
    """Scenario id and agent; None: no iteration has ended."""
    required: float | None = None
    """Required pass rate, the highest of its tests; None: it is advisory."""
    outcomes: list[tuple[int, str]] = field(default_factory=list)
    """Number and outcome of each iteration that ended; several tests may share a number."""
    running: dict[pytest.Item, int] = field(default_factory=dict)
    """Iterations that have started and not ended, with their numbers."""
    cause: StopCause | None = None


class AdaptiveIterations:
    """Passes over the iterations that are not needed.

    A decision on an iteration depends on the outcomes of the iterations of its scenario with lower
    numbers, and on nothing else. Results are therefore the same for any concurrency.
    """

    def __init__(self, plan: AdaptivePlan, scenario_count: int) -> None:
        self._plan = plan
        self._regression_evidence = scenario_count / plan.level
        self._scenarios: dict[str, _AdaptiveScenario] = {}
        self._units: dict[pytest.Item, str] = {}

    @classmethod
    def start(
        cls, config: pytest.Config, items: Sequence[pytest.Item]
    ) -> AdaptiveIterations | None:
        """Return those of the selected episodes; None: none is adaptive."""
        found = cls(load_plan(config), get_parts(config).scenario_count or 1)
        for item in items:
            if (limits := get_iteration(item).limits).minimum is not None:
                found.add(item, limits)
        return found if found._units else None

    def add(self, item: pytest.Item, limits: IterationRange) -> None:
        """Add an adaptive iteration of a scenario."""
        unit = self._units[item] = f"{get_scenario_unit(item)} {_get_agent(item)}"
        found = self._scenarios.setdefault(unit, _AdaptiveScenario(limits, limits.guaranteed))
        found.tests += get_iteration(item).number == 1

    def passes_over(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Pass over an iteration that is not needed, and end fixtures that no other test uses."""
        if not self.is_unneeded(item):
            return False
        end_unused_fixtures(item, nextitem)
        return True

    def is_unneeded(self, item: pytest.Item) -> bool:
        """Return whether the earlier iterations have made this one unnecessary."""
        scenario, number = self._find(item), get_iteration(item).number
        if scenario is None or number <= scenario.allowed:
            return False
        if scenario.cause is None and not self.is_waiting(item):
            scenario.cause = self._decide(scenario, below=number)
            scenario.allowed = number if scenario.cause is None else scenario.allowed
        return scenario.cause is not None

    def is_waiting(self, item: pytest.Item) -> bool:
        """Return whether an earlier iteration that decides on this one is still running."""
        scenario, number = self._find(item), get_iteration(item).number
        if scenario is None or number <= scenario.allowed:
            return False
        return any(running < number for running in scenario.running.values())

    def begin(self, item: pytest.Item) -> None:
        """Note that an attempt at an iteration has started."""
        if (scenario := self._find(item)) is not None:
            scenario.running[item] = get_iteration(item).number

    def end(self, item: pytest.Item, episode: Episode | None) -> None:
        """Record the outcome of an iteration after its last attempt."""
        if (scenario := self._find(item)) is None or episode is None:
            return
        scenario.running.pop(item, None)
        scenario.outcomes.append((get_iteration(item).number, episode.outcome))
        scenario.identity = scenario.identity or (episode.scenario_id, episode.agent)
        own = episode.min_pass_rate
        rate = self._plan.min_pass_rate if own is None else own
        if episode.gate == "required" and rate is not None:
            scenario.required = max(rate, scenario.required or 0.0)

    def list_stops(self) -> Iterator[AdaptiveStop]:
        """Yield why each scenario that has run in this process stopped."""
        for scenario in self._scenarios.values():
            if scenario.identity is None:
                continue
            cause = scenario.cause or self._decide(scenario, below=scenario.limits.total + 1)
            name, agent = scenario.identity
            yield AdaptiveStop(
                scenario_id=name,
                agent=agent,
                cause=cause or "unfinished",
                required=scenario.required,
            )

    def describe(self) -> str:
        """Return the note about them that is printed before they run."""
        ranges = [scenario.limits for scenario in self._scenarios.values()]
        low, high = min(r.guaranteed for r in ranges), max(r.total for r in ranges)
        scenarios = pluralize(len(ranges), "scenario")
        return f"adaptive iterations: {scenarios} of {low} to {high} iterations, as many as needed"

    def _find(self, item: pytest.Item) -> _AdaptiveScenario | None:
        unit = self._units.get(item)
        return None if unit is None else self._scenarios[unit]

    def _decide(self, scenario: _AdaptiveScenario, *, below: int) -> StopCause | None:
        if scenario.identity is None:
            return None  # another process ran the earlier ones, and perhaps crashed
        outcomes = Counter(outcome for number, outcome in scenario.outcomes if number < below)
        counts = IterationCounts(
            outcomes["passed"], outcomes["failed"], outcomes["error"] + outcomes["skipped"]
        )
        demands = Demands(scenario.required, self._predict(scenario), self._regression_evidence)
        limits, tests = scenario.limits, max(scenario.tests, 1)
        whole = IterationRange(limits.total * tests, limits.guaranteed * tests)
        return find_stop(counts, demands, whole)

    def _predict(self, scenario: _AdaptiveScenario) -> PredictedRate | None:
        """Return the baseline's prediction; an only agent may have been renamed."""
        assert scenario.identity is not None  # noqa: S101 - see above
        name, agent = scenario.identity
        named = [found for found in self._plan.predicted if found.scenario_id == name]
        exact = [found for found in named if found.agent == agent]
        chosen = exact or (named if len(named) == 1 else [])
        return PredictedRate(chosen[0].alpha, chosen[0].beta) if chosen else None


def _get_agent(item: pytest.Item) -> str:
    """Return the agent that the item's markers name: each is judged alone."""
    marks = item.iter_markers(detection.NAME)
    return next((str(mark.kwargs["agent"]) for mark in marks if "agent" in mark.kwargs), "")


def end_unused_fixtures(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the fixtures that no later test uses, at the turn of an item that does not run."""
    stacks = item.session._setupstate  # noqa: SLF001 - pytest has no public name for it
    call = pytest.CallInfo.from_call(lambda: stacks.teardown_exact(nextitem), "teardown")
    if call.excinfo is not None:
        report = pytest.TestReport.from_item_and_call(item, call)
        item.ihook.pytest_runtest_logreport(report=report)


def load_plan(config: pytest.Config) -> AdaptivePlan:
    """Return the plan of `agent-eval run`; without one, no baseline is known."""
    file: str | None = config.option.episode_adaptive_plan
    return (
        AdaptivePlan()
        if file is None
        else AdaptivePlan.model_validate_json(Path(file).read_bytes())
    )
