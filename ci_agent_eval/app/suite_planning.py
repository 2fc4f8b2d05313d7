"""The pass rates of a baseline's required scenarios, to plan runs by."""

from __future__ import annotations

from ci_agent_eval.analysis.comparison.model import Baseline, NoBaseline
from ci_agent_eval.analysis.comparison.pool import find_distinct_runs
from ci_agent_eval.analysis.comparison.run_variation import PassCounts
from ci_agent_eval.analysis.comparison.scenario_runs import summarize_baseline_run
from ci_agent_eval.analysis.comparison.suite_power import RatedScenario
from ci_agent_eval.analysis.false_alarms import (
    ACCEPTABLE_CHANCE,
    compute_any_chance,
    compute_shortfall_chance,
)
from ci_agent_eval.config.settings import Settings
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate import GatePolicy, find_required_share
from ci_agent_eval.results.baselines.request import FoundBaseline


def require_rated_scenarios(
    found: FoundBaseline | None, settings: Settings
) -> tuple[RatedScenario, ...]:
    """Return the required scenarios of a baseline. Raises InputError if there are none."""
    if found is None:
        raise InputError("there is no baseline: give --baseline, or --scenarios for a plan")
    name = settings.compare.baseline
    if isinstance(found.baseline, NoBaseline):
        raise InputError(f"{name}: {found.baseline.reason}; name what a run has left")
    rated = rate_scenarios(found.baseline, settings.policy)
    if not rated:
        raise InputError(
            f"{name}: no required scenario with a fixed number of iterations was judged in every "
            "run; name other runs"
        )
    return rated


def rate_scenarios(baseline: Baseline, policy: GatePolicy) -> tuple[RatedScenario, ...]:
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
        RatedScenario(
            tuple(PassCounts(tallies[key].passed, tallies[key].judged) for tallies in usual),
            find_required_share(summary, policy),
        )
        for key, summary in latest.items()
        if all(key in tallies for tallies in usual)
    )


def describe_false_alarms(baseline: Baseline, policy: GatePolicy) -> str | None:
    """Return a sentence if an unchanged suite would often fail; None: it would not."""
    rated = rate_scenarios(baseline, policy)
    if policy.suite_min_pass_rate is not None or not rated:
        return None
    chance = compute_any_chance([_compute_chance(scenario) for scenario in rated])
    if chance <= ACCEPTABLE_CHANCE:
        return None
    return (
        f"note: at the baseline's pass rates an unchanged suite fails in {chance:.0%} of runs; "
        "`agent-eval power` shows which iterations or required rates would do"
    )


def _compute_chance(scenario: RatedScenario) -> float:
    passed = sum(run.passed for run in scenario.runs)
    judged = sum(run.judged for run in scenario.runs)
    return compute_shortfall_chance(scenario.runs[0].judged, passed / judged, scenario.required)
