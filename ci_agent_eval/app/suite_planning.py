"""A note before a run whose unchanged suite would often fail its required pass rates."""

from __future__ import annotations

from typing import NamedTuple

from ci_agent_eval.analysis.comparison.model import Baseline
from ci_agent_eval.analysis.comparison.pool import find_distinct_runs
from ci_agent_eval.analysis.comparison.run_variation import PassCounts
from ci_agent_eval.analysis.comparison.scenario_runs import summarize_baseline_run
from ci_agent_eval.analysis.false_alarms import (
    ACCEPTABLE_CHANCE,
    compute_any_chance,
    compute_shortfall_chance,
)
from ci_agent_eval.gate import GatePolicy, find_required_share


class _RatedScenario(NamedTuple):
    """A required scenario in each run of the base."""

    runs: tuple[PassCounts, ...]
    """The latest first."""
    required: float
    """Required share of its iterations, 0 to 1."""


def describe_false_alarms(baseline: Baseline, policy: GatePolicy) -> str | None:
    """Return a sentence if an unchanged suite would often fail; None: it would not."""
    rated = _rate_scenarios(baseline, policy)
    if policy.suite_min_pass_rate is not None or not rated:
        return None
    chance = compute_any_chance([_compute_chance(scenario) for scenario in rated])
    if chance <= ACCEPTABLE_CHANCE:
        return None
    return (
        f"note: at the baseline's pass rates an unchanged suite fails in {chance:.0%} of runs; "
        "require less of each scenario, or set suite_min_pass_rate"
    )


def _rate_scenarios(baseline: Baseline, policy: GatePolicy) -> tuple[_RatedScenario, ...]:
    """Return the strict required scenarios of the latest run, in each usual run of the base.

    Runs that lack more than half of them are no usual runs; a scenario that a usual run lacks is
    left out, and so is one whose iterations are adaptive.
    """
    runs = [
        summarize_baseline_run(baseline.runs[place].episodes)
        for place in find_distinct_runs(baseline.runs)
    ]
    latest = {
        key: run.summary
        for key, run in (runs[0].items() if runs else ())
        if run.summary.gate == "required"
        and run.summary.mode == "strict"
        and run.summary.adaptive is None
        and run.tally.judged
    }
    judged = [{key: run[key].tally for key in latest if key in run and run[key].tally.judged}
              for run in runs]  # fmt: skip
    usual = [tallies for tallies in judged if len(tallies) * 2 >= len(latest)]
    return tuple(
        _RatedScenario(
            tuple(PassCounts(tallies[key].passed, tallies[key].judged) for tallies in usual),
            find_required_share(summary, policy),
        )
        for key, summary in latest.items()
        if all(key in tallies for tallies in usual)
    )


def _compute_chance(scenario: _RatedScenario) -> float:
    passed = sum(run.passed for run in scenario.runs)
    judged = sum(run.judged for run in scenario.runs)
    return compute_shortfall_chance(scenario.runs[0].judged, passed / judged, scenario.required)
