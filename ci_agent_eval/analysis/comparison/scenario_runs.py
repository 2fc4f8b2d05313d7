"""A run's scenarios with their episodes: one side of a comparison."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ci_agent_eval.analysis.comparison.conditions import (
    ConditionSets,
    collect_conditions,
    matches_any,
    read_conditions,
)
from ci_agent_eval.analysis.comparison.model import ScenarioMetrics
from ci_agent_eval.analysis.comparison.pool import IterationPool, ScenarioKey
from ci_agent_eval.analysis.loaded_results import (
    EpisodeRecord,
    LoadedResults,
    OutcomeTally,
    assign_agents,
    tally_outcomes,
)
from ci_agent_eval.analysis.summary import ScenarioSummary, summarize_results
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.episode import get_decisive_attempt

IsPassing = Callable[[ScenarioSummary], bool | None]
"""Whether a scenario reaches its required pass rate; None: it was not judged."""

RequiredShare = Callable[[ScenarioSummary], float]
"""Required share of passing iterations, if the scenario is required."""


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """A scenario in one run, with its episodes."""

    summary: ScenarioSummary
    """Summary of all its iterations."""
    episodes: tuple[EpisodeRecord, ...]
    conditions: ConditionSets
    tally: OutcomeTally
    """Tally of the compared iterations."""
    incomparable: tuple[EpisodeRecord, ...] = ()
    """The judged iterations that are not compared: the other side has none under the same
    conditions."""
    place: int = 0
    """Place of the run in the baseline, 0 for the latest."""


def group_scenario_runs(
    scenarios: Iterable[ScenarioSummary], episodes: Iterable[EpisodeRecord], place: int = 0
) -> dict[ScenarioKey, ScenarioRun]:
    """Return each scenario of a run with its episodes."""
    grouped: dict[ScenarioKey, list[EpisodeRecord]] = defaultdict(list)
    for record in assign_agents(episodes):
        grouped[record.scenario_id, record.agent or ""].append(record)
    return {
        build_scenario_key(scenario): ScenarioRun(
            scenario,
            tuple(grouped[build_scenario_key(scenario)]),
            collect_conditions(grouped[build_scenario_key(scenario)]),
            scenario.rated,
            place=place,
        )
        for scenario in scenarios
    }


def keep_comparable(
    run: ScenarioRun, condition_sets: ConditionSets, across: Collection[str]
) -> ScenarioRun:
    """Return the run without iterations that were judged under other conditions."""
    if all(matches_any(kind, condition_sets, across) for kind in run.conditions):
        return run
    iterations: dict[tuple[str, int], list[EpisodeRecord]] = defaultdict(list)
    for record in sorted(run.episodes, key=lambda record: record.attempt):
        iterations[record.nodeid or "", record.iteration].append(record)
    kept: list[EpisodeRecord] = []
    incomparable: list[EpisodeRecord] = []
    tally = OutcomeTally()
    for attempts in iterations.values():
        final = get_decisive_attempt(attempts)
        if final.outcome in {"passed", "failed"} and not matches_any(
            read_conditions(final), condition_sets, across
        ):
            incomparable += [final] if final.is_rated else []
        else:
            kept += attempts
            tally += tally_outcomes([final.outcome]) if final.is_rated else OutcomeTally()
    return replace(run, episodes=tuple(kept), tally=tally, incomparable=tuple(incomparable))


def summarize_baseline_run(
    episodes: Sequence[EpisodeRecord], place: int = 0
) -> dict[ScenarioKey, ScenarioRun]:
    """Summarize the baseline run at a place, 0 for the latest, into its scenarios."""
    summary = summarize_results(LoadedResults(episodes=tuple(episodes)), budgets=SuiteBudgets())
    return group_scenario_runs(summary.scenarios, episodes, place)


def build_scenario_key(scenario: ScenarioSummary) -> ScenarioKey:
    """Return the scenario id and agent of a summary."""
    return scenario.scenario_id, scenario.agent or ""


def compute_demand(run: ScenarioRun, required_share: RequiredShare) -> float | None:
    """Return the required share of passing iterations by the tests; None: they are advisory.

    A quarantine is ignored: it expires and does not change the tests.
    """
    is_required = any(record.gate == "required" for record in run.episodes)
    return required_share(run.summary) if is_required else None


def build_scenario_metrics(
    runs: Sequence[ScenarioRun], pool: IterationPool, is_passing: IsPassing
) -> ScenarioMetrics:
    """Return the metrics of a scenario's pooled runs; `passing` is of the latest judged run."""
    verdicts = (is_passing(run.summary) for run in runs)
    return ScenarioMetrics(
        passed=pool.tally.passed,
        judged=pool.tally.judged,
        passing=next((verdict for verdict in verdicts if verdict is not None), None),
        cost_usd=pool.aggregate("cost_usd"),
        tokens=pool.aggregate("tokens"),
        tool_calls=pool.aggregate("tool_calls"),
        p95_latency_ms=pool.aggregate("p95_latency_ms"),
        set_aside=sum(len(run.incomparable) for run in runs),
        flaky=pool.flaky,
        latest_judged=runs[0].tally.judged,
    )
