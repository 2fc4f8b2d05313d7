"""Compare variants: agents, prompts or models that ran the same scenarios in one run.

Both sides of a pair shared the run, and with it the shift of the day, so that they are compared as
base and head that ran in turn. `docs/decisions/0089-variants.md` explains the choices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from ci_agent_eval.analysis.agent_names import assign_agents
from ci_agent_eval.analysis.comparison.log_means import collect_measurements
from ci_agent_eval.analysis.comparison.metric_changes import (
    MeasuredSuite,
    SuiteRatio,
    build_change,
    compare_means,
    compare_typical_values,
)
from ci_agent_eval.analysis.comparison.pool import (
    IterationPool,
    PoolPair,
    RunSample,
    ScenarioKey,
    pool_iterations,
)
from ci_agent_eval.analysis.comparison.run_variation import SHARED_DAY, ScenarioCounts
from ci_agent_eval.analysis.comparison.scenario_test import compute_drop_p_values
from ci_agent_eval.analysis.comparison.suite_change import (
    compute_suite_change,
    list_outcomes,
    sample_measure,
)
from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.analysis.natural_order import build_natural_key
from ci_agent_eval.analysis.variants import (
    MOST_COMPARED,
    VariantFigure,
    VariantMeasure,
    VariantPair,
    VariantScenario,
)

LEVEL = 0.05
"""Chance that equal variants differ by any figure or scenario of the report that is certain."""

_SUITE_METRICS: Mapping[
    VariantMeasure, tuple[str, Callable[[MeasuredSuite], SuiteRatio | None]]
] = {
    "cost_usd": ("cost_usd", compare_means),
    "tokens": ("tokens", compare_means),
    "typical_latency_ms": ("p95_latency_ms", compare_typical_values),
}

_MEASURES = 2 + len(_SUITE_METRICS)


def compare_variants(episodes: Iterable[EpisodeRecord]) -> tuple[VariantPair, ...]:
    """Compare the agents of each scenario that several ran, with the first one by name.

    The result does not depend on the order of episodes. Carried-over results do not count, nor
    agents of which no iteration of the scenario was judged, nor pairs beyond `MOST_COMPARED`.
    """
    found = _pool_by_agent(episodes)
    pairs: dict[tuple[str, str], dict[ScenarioKey, PoolPair]] = defaultdict(dict)
    for scenario_id in _sort_names(found):
        names = _sort_names(found[scenario_id])
        for agent in names[1:]:
            sides = found[scenario_id][names[0]], found[scenario_id][agent]
            pairs[names[0], agent][scenario_id, ""] = sides
    ordered = sorted(pairs, key=lambda pair: [(build_natural_key(name), name) for name in pair])
    del ordered[MOST_COMPARED:]
    # Half of the level is for the scenarios, half for the figures; a direction gets half of that.
    level = LEVEL / 4 / max(len(ordered), 1)
    return tuple(_compare_pair(*pair, pairs[pair], level) for pair in ordered)


def _sort_names(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (build_natural_key(name), name))


def _pool_by_agent(episodes: Iterable[EpisodeRecord]) -> dict[str, dict[str, IterationPool]]:
    """Return the judged iterations of each scenario, by agent."""
    grouped: dict[str, dict[str, list[EpisodeRecord]]] = defaultdict(lambda: defaultdict(list))
    for record in assign_agents(episodes):
        if record.agent and record.carried_over is None:
            grouped[record.scenario_id][record.agent].append(record)
    return {
        scenario_id: {
            agent: pool
            for agent, own in by_agent.items()
            if (pool := pool_iterations([(0, own)])).runs
        }
        for scenario_id, by_agent in grouped.items()
        if len(by_agent) > 1
    }


def _compare_pair(
    first: str, second: str, pools: Mapping[ScenarioKey, PoolPair], level: float
) -> VariantPair:
    scenarios = tuple(_compare_scenarios(pools, level))
    figures = [*_list_shares(pools, level / _MEASURES), *_list_metrics(pools, level / _MEASURES)]
    if len(scenarios) == 1:  # its own test is the one of the pass rate, too
        figures[0] = replace(figures[0], differs=scenarios[0].differs)
    return VariantPair(first, second, tuple(figures), scenarios)


def _list_shares(pools: Mapping[ScenarioKey, PoolPair], level: float) -> Iterator[VariantFigure]:
    """Yield the pass rate, and the score of evaluations."""
    measures: tuple[tuple[VariantMeasure, Callable[[RunSample], Sequence[float]]], ...] = (
        ("pass_rate", list_outcomes),
        ("score", lambda sample: sample.scores),
    )
    for measure, get_values in measures:
        samples = sample_measure(list(pools.values()), get_values)
        if not samples:
            continue
        change = compute_suite_change("pass_rate", samples, gates=False, interleaved=True)
        first, second = (
            round(fmean(side), 10)
            for side in zip(*((s.usual, s.after) for s in samples), strict=True)
        )
        differs = (
            change is not None and first != second and change.find_certainty(level) == "certain"
        )
        # Equal differences in all scenarios say nothing about how much they vary.
        interval = None if change is None or len(set(change.interval)) == 1 else change.interval
        yield VariantFigure(measure, first, second, interval, differs, len(samples))


def _list_metrics(pools: Mapping[ScenarioKey, PoolPair], level: float) -> Iterator[VariantFigure]:
    """Yield cost, tokens and latency, as far as they were measured."""
    measurements = collect_measurements(pools)
    for measure, (name, compare) in _SUITE_METRICS.items():
        suite = MeasuredSuite(list(measurements[name].values()), SHARED_DAY)
        found = build_change(suite, compare(suite), len(pools), level)
        if found.before is not None and found.after is not None:
            # From 0 any rise is certain against a baseline; here one rare value would decide.
            differs = found.certainty == "certain" and found.interval is not None
            # Scenarios of 0 ms have no geometric mean.
            used = (measure == "typical_latency_ms" and len(suite.logs)) or found.scenarios
            sides = found.before, found.after, found.interval
            yield VariantFigure(measure, *sides, differs, used)


def _compare_scenarios(
    pools: Mapping[ScenarioKey, PoolPair], level: float
) -> Iterator[VariantScenario]:
    """Yield each scenario, with the decision of Fisher's exact test in both directions."""
    counts = {
        key[0]: (first.runs[0].counts, second.runs[0].counts)
        for key, (first, second) in pools.items()
    }
    fell, rose = (
        compute_drop_p_values([ScenarioCounts((a,), b) for a, b in sides], 0.0, level)
        for sides in (counts.values(), [(b, a) for a, b in counts.values()])
    )
    for (scenario_id, (first, second)), *p_values in zip(counts.items(), fell, rose, strict=True):
        differs = any(p_value is not None and p_value < level for p_value in p_values)
        adaptive = any(
            sample.sequential not in {None, sample.counts}
            for pool in pools[scenario_id, ""]
            for sample in pool.runs
        )
        yield VariantScenario(scenario_id, *first, *second, differs, adaptive)
