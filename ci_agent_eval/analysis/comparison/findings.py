"""The findings of a comparison, for the gate and for reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

from ci_agent_eval.analysis.comparison.model import (
    MAX_ITERATIONS,
    AllowedIncreases,
    Comparison,
    MetricChange,
    NoBaseline,
    ScenarioComparison,
    ScenarioIncrease,
    ScenarioMetrics,
    SuiteChange,
)
from ci_agent_eval.contract.wording import list_cases, pluralize

ComparisonFindingKind = Literal[
    "regression",
    "suite_drop",
    "unconfirmed",
    "undecided",
    "vanished",
    "vanished_cases",
    "downgraded",
    "weaker_demands",
    "lower_scores",
    "not_judged",
    "not_comparable",
    "fewer_iterations",
    "flakier",
    "newly_over",
    "increase",
    "possible_increase",
    "scenario_increase",
    "baseline",
]


DOWNGRADE_ADVICE = "put it back, or acknowledge it where this is meant"
"""Advice on a downgraded scenario."""


LimitedMetric = Literal["cost_usd", "p95_latency_ms", "typical_latency_ms"]
"""Metrics of a `Comparison` with an optional limit on their increase."""


class MetricIncrease(NamedTuple):
    """A metric of the suite that rose, or may have risen, over its limit."""

    kind: Literal["certain", "possible", "not_measured"]
    """`possible`: not significant. `not_measured`: some scenarios lack a measurement."""
    figure: LimitedMetric
    change: MetricChange
    allowed: float
    """Maximum relative increase."""


class ComparisonFinding(NamedTuple):
    """A finding of the baseline comparison."""

    kind: ComparisonFindingKind
    message: str | MetricIncrease | ScenarioIncrease | SuiteChange
    scenario: ScenarioComparison | None = None
    """None: the finding is about the suite."""
    advice: str = ""
    """Advice if the finding is not acknowledged."""


def list_comparison_findings(
    found: Comparison | NoBaseline, increases: AllowedIncreases
) -> Iterator[ComparisonFinding]:
    """Yield all findings of a comparison, first by scenario, then about the suite."""
    if isinstance(found, NoBaseline):
        yield ComparisonFinding("baseline", f"no baseline: {found.reason}")
        return
    for scenario in found.scenarios:
        yield from _list_scenario_findings(scenario)
    for change in found.suite:
        if change.fell:
            yield ComparisonFinding("suite_drop", change)
        elif change.confirmation is not None:
            yield ComparisonFinding("unconfirmed", change)
    yield from _list_metric_findings("cost_usd", found, increases.cost, increases.scenario_cost)
    yield from _list_metric_findings("p95_latency_ms", found, increases.latency)
    yield from _list_metric_findings(
        "typical_latency_ms", found, increases.typical_latency, increases.scenario_latency
    )
    yield from _list_repetition_findings(found)


def _list_scenario_findings(scenario: ScenarioComparison) -> Iterator[ComparisonFinding]:
    if scenario.call in {"regression", "unconfirmed"}:
        p_value = _format_p_value(scenario.p_value)
        drop = f"passes less often: {describe_passes(scenario)} ({p_value})"
        again = describe_confirmation(scenario)
        yield ComparisonFinding(scenario.call, f"{drop}; {again}" if again else drop, scenario)
    elif scenario.call == "undecided":
        needed = describe_needed_iterations(scenario)
        message = f"not enough iterations to tell: {describe_passes(scenario)}; {needed}"
        yield ComparisonFinding("undecided", message, scenario)
    elif scenario.change == "vanished":
        yield ComparisonFinding("vanished", "the baseline has it, and it did not run", scenario)
    elif scenario.change == "not_comparable":
        message = f"not comparable with the baseline: {_format_differences(scenario)}"
        yield ComparisonFinding("not_comparable", message, scenario)
    elif scenario.change == "not_judged" and scenario.before and scenario.before.judged:
        yield ComparisonFinding("not_judged", describe_unjudged(scenario), scenario)
    if scenario.differences and scenario.change != "not_comparable":
        message = f"{describe_set_aside(scenario)}: {_format_differences(scenario)}"
        yield ComparisonFinding("not_comparable", message, scenario)
    yield from _list_iteration_findings(scenario)
    for increase in scenario.increases:
        kind: ComparisonFindingKind = (
            "scenario_increase" if increase.allowed is None else "increase"
        )
        yield ComparisonFinding(kind, increase, scenario)
    yield from _list_weakening_findings(scenario)
    if scenario.newly_over:
        budgets = ", ".join(scenario.newly_over)
        yield ComparisonFinding("newly_over", f"newly over budget: {budgets}", scenario)


def _list_weakening_findings(scenario: ScenarioComparison) -> Iterator[ComparisonFinding]:
    if scenario.is_downgraded:
        yield ComparisonFinding(
            "downgraded", describe_downgrade(scenario), scenario, DOWNGRADE_ADVICE
        )
    if scenario.weaker_demands:
        demands = "; ".join(scenario.weaker_demands)
        message = f"this change requires less than before: {demands}"
        yield ComparisonFinding("weaker_demands", message, scenario)
    if scenario.lower_scores:
        message = f"checks pass with lower scores: {'; '.join(scenario.lower_scores)}"
        yield ComparisonFinding("lower_scores", message, scenario)


def describe_vanished_cases(scenario: ScenarioComparison) -> str:
    """Describe the cases that only the baseline has."""
    names = scenario.vanished_cases
    count = f"{pluralize(len(names), 'case')} of the baseline did not run: {list_cases(names)}"
    return f"{count}; bring it back, or acknowledge it"


def describe_confirmation(scenario: ScenarioComparison) -> str:
    """Describe what running the base again showed; empty if it was not run again."""
    again = scenario.confirmation
    if again is None:
        return ""
    base = f"{again.base_passed} of {again.base_judged}"
    head = f"{again.passed} of {again.judged} here"
    if again.result == "confirmed":
        return f"confirmed: passes on the base today, {base}, and {head}"
    if again.result == "unclear":
        return f"not confirmed, because too little was judged: {base} on the base, and {head}"
    if again.base_passed < again.base_judged:
        return f"also fails on the base today: {base} passed there, and {head}"
    return f"passes again today: {base} on the base, and {head}"


def _format_p_value(value: float | None) -> str:
    """Format an adjusted p-value as all reports do."""
    return "adjusted p < 0.001" if (value or 0.0) < 0.001 else f"adjusted p = {value:.2g}"


def _list_iteration_findings(scenario: ScenarioComparison) -> Iterator[ComparisonFinding]:
    if scenario.thinned:
        yield ComparisonFinding("fewer_iterations", describe_thinning(scenario), scenario)
    if scenario.flakier:
        yield ComparisonFinding("flakier", describe_retries(scenario), scenario)
    if scenario.vanished_cases:
        yield ComparisonFinding("vanished_cases", describe_vanished_cases(scenario), scenario)


def describe_thinning(scenario: ScenarioComparison) -> str:
    """Describe a number of iterations that is too low to detect a drop."""
    before, after = scenario.before, scenario.after
    usual, judged = before.latest_judged if before else 0, after.judged if after else 0
    were = "iteration was" if judged == 1 else "iterations were"
    seen = f"{judged} {were} judged, {usual} in the baseline's latest run"
    return f"{seen}: too few to show a drop; run as many as before"


def describe_retries(scenario: ScenarioComparison) -> str:
    """Describe how many iterations passed only on a retry, on both sides."""
    now, past = (
        f"{one.flaky} of {one.judged}" if one else "none"
        for one in (scenario.after, scenario.before)
    )
    return f"{now} iterations passed only on a retry, {past} in the baseline"


def describe_unjudged(scenario: ScenarioComparison) -> str:
    """Describe a scenario that was judged in the baseline only."""
    before = scenario.before
    past = f"{before.passed} of {before.judged}" if before else "none"
    return f"no iteration was judged, and {past} passed in the baseline"


def _format_differences(scenario: ScenarioComparison) -> str:
    return "; ".join(f"{d.condition} was {d.before}, is {d.after}" for d in scenario.differences)


def describe_set_aside(scenario: ScenarioComparison) -> str:
    """Describe how many iterations of which side are not compared."""
    before, after = scenario.before, scenario.after
    if after is not None and after.set_aside:
        share = f"{_format_share(after)} iterations {_is_or_are(after)}"
        return f"{share} not comparable with the baseline"
    if before is None:
        return ""
    return f"{_format_share(before)} iterations of the baseline {_is_or_are(before)} not comparable"


def _format_share(one: ScenarioMetrics) -> str:
    return f"{one.set_aside} of {one.judged + one.set_aside}"


def _is_or_are(one: ScenarioMetrics) -> str:
    return "is" if one.set_aside == 1 else "are"


def describe_downgrade(scenario: ScenarioComparison) -> str:
    """Describe how the required share of a scenario went down."""
    before, now = (
        f"{(share or 0) * 100:.4g}%" for share in (scenario.demand_before, scenario.demand)
    )
    if scenario.demand is None:
        return f"it is advisory now, and {before} of its iterations had to pass in the baseline"
    return f"{now} of its iterations must pass now, {before} in the baseline"


def describe_passes(scenario: ScenarioComparison) -> str:
    """Return the passes of both sides: `4 of 5 now, 50 of 50 before`."""
    parts = []
    if scenario.after is not None:
        parts.append(f"{scenario.after.passed} of {scenario.after.judged} now")
    if scenario.before is not None:
        parts.append(f"{scenario.before.passed} of {scenario.before.judged} before")
    return ", ".join(parts)


def describe_needed_iterations(scenario: ScenarioComparison) -> str:
    """Describe how many iterations, or how large a baseline, a decision needs."""
    if scenario.limited_by_runs:
        return "unchanged runs differ too much for more iterations of one run to tell"
    if scenario.needed_iterations is None:
        most, size = f"{MAX_ITERATIONS:,}", scenario.needed_baseline
        about = f"more than {most}" if size is None else f"about {size:,}"
        return f"the baseline needs {about} iterations; let more runs of the base branch accumulate"
    return f"with {scenario.needed_iterations} or more, 4 of 5 drops of this size show"


def _list_metric_findings(
    figure: LimitedMetric,
    found: Comparison,
    allowed: float | None,
    allowed_of_scenario: float | None = None,
) -> Iterator[ComparisonFinding]:
    change: MetricChange = getattr(found, figure)
    limits = [limit for limit in (allowed, allowed_of_scenario) if limit is not None]
    if limits and change.scenarios < change.compared:
        message = MetricIncrease("not_measured", figure, change, limits[0])
        yield ComparisonFinding("increase", message)
    rise = compute_increase(change)
    if allowed is None or rise is None or rise <= allowed:
        return
    if is_certain_increase(change, allowed):
        yield ComparisonFinding("increase", MetricIncrease("certain", figure, change, allowed))
    else:
        yield ComparisonFinding(
            "possible_increase", MetricIncrease("possible", figure, change, allowed)
        )


def compute_increase(change: MetricChange) -> float | None:
    """Return the observed relative change; None: not measured."""
    if change.before is None or change.after is None:
        return None
    if change.before > 0:
        return change.after / change.before - 1
    return math.inf if change.after > 0 else 0.0


def is_certain_increase(change: MetricChange, allowed: float) -> bool:
    """Return whether an increase over the limit is significant.

    A metric that was 0 in all baseline iterations needs no test.
    """
    return change.before == 0 or (change.least is not None and change.least > allowed)


def _list_repetition_findings(found: Comparison) -> Iterator[ComparisonFinding]:
    """Yield a finding for baseline runs that repeat others."""
    if found.copies:
        message = "the very results of a later run and do not count again; keep each run once"
        yield ComparisonFinding(
            "baseline", f"{found.copies} of {found.runs} runs of the baseline have {message}"
        )
