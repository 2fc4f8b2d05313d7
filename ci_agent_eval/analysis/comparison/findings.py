"""What a comparison says that a gate weighs or a reader should know, sentence by sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.analysis.comparison.model import (
    Comparison,
    MetricChange,
    NoBaseline,
    ScenarioComparison,
    ScenarioMetrics,
)
from ci_agent_eval.analysis.comparison.power import MAX_ITERATIONS

ComparisonFindingKind = Literal[
    "regression",
    "undecided",
    "vanished",
    "downgraded",
    "not_judged",
    "not_comparable",
    "fewer_iterations",
    "flakier",
    "newly_over",
    "increase",
    "possible_increase",
    "baseline",
]


DOWNGRADE_ADVICE = "put it back, or acknowledge it where this is meant"
"""What to do about a downgrade."""


@dataclass(frozen=True, slots=True)
class AllowedIncreases:
    """By which share cost and latency may rise; None: by any."""

    cost: float | None = None
    latency: float | None = None


LimitedMetric = Literal["cost_usd", "p95_latency_ms"]
"""Figures of a `Comparison` that may be allowed to rise by so much only."""


@dataclass(frozen=True, slots=True)
class MetricIncrease:
    """A figure of the suite that rose by more than is allowed, or may have."""

    kind: Literal["certain", "possible", "not_measured"]
    """`possible`: it may be chance. `not_measured`: not in every scenario, on both sides."""
    figure: LimitedMetric
    moved: MetricChange
    allowed: float
    """Share by which it may rise."""


@dataclass(frozen=True, slots=True)
class ComparisonFinding:
    """One thing that was found by comparing."""

    kind: ComparisonFindingKind
    message: str | MetricIncrease
    scenario: ScenarioComparison | None = None
    """None: it is about the suite."""
    advice: str = ""
    """What to do where nothing was agreed about it."""


def list_comparison_findings(
    found: Comparison | NoBaseline, increases: AllowedIncreases
) -> Iterator[ComparisonFinding]:
    """Yield everything worth a reason or a warning, by scenario, the suite's last."""
    if isinstance(found, NoBaseline):
        yield ComparisonFinding("baseline", f"no baseline: {found.reason}")
        return
    for scenario in found.scenarios:
        yield from _scenario_findings(scenario)
    yield from _increase_findings("cost_usd", found.cost_usd, increases.cost, found.level)
    yield from _increase_findings(
        "p95_latency_ms", found.p95_latency_ms, increases.latency, found.level
    )
    yield from _repetition_findings(found)


def _scenario_findings(scenario: ScenarioComparison) -> Iterator[ComparisonFinding]:
    if scenario.call == "regression":
        p_value = _format_p_value(scenario.p_value)
        yield ComparisonFinding(
            "regression", f"passes less often: {describe_passes(scenario)} ({p_value})", scenario
        )
    elif scenario.call == "undecided":
        message = f"not enough iterations to tell: {describe_passes(scenario)}; {describe_needed_iterations(scenario)}"
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
    yield from _iteration_findings(scenario)
    if scenario.is_downgraded:
        yield ComparisonFinding(
            "downgraded", describe_downgrade(scenario), scenario, DOWNGRADE_ADVICE
        )
    if scenario.newly_over:
        budgets = ", ".join(scenario.newly_over)
        yield ComparisonFinding("newly_over", f"newly over budget: {budgets}", scenario)


def _format_p_value(value: float | None) -> str:
    """Write an adjusted p-value as every rendering does."""
    return "adjusted p < 0.001" if (value or 0.0) < 0.001 else f"adjusted p = {value:.2g}"


def _iteration_findings(scenario: ScenarioComparison) -> Iterator[ComparisonFinding]:
    if scenario.thinned:
        yield ComparisonFinding("fewer_iterations", describe_thinning(scenario), scenario)
    if scenario.flakier:
        yield ComparisonFinding("flakier", describe_retries(scenario), scenario)


def describe_thinning(scenario: ScenarioComparison) -> str:
    """Say how many fewer iterations were judged than before."""
    before, after = scenario.before, scenario.after
    usual, judged = before.latest_judged if before else 0, after.judged if after else 0
    were = "iteration was" if judged == 1 else "iterations were"
    seen = f"{judged} {were} judged, {usual} in the baseline's latest run"
    return f"{seen}: too few to show a drop; run as many as before"


def describe_retries(scenario: ScenarioComparison) -> str:
    """Say how many iterations passed only on a retry, on both sides."""
    now, past = (
        f"{one.flaky} of {one.judged}" if one else "none"
        for one in (scenario.after, scenario.before)
    )
    return f"{now} iterations passed only on a retry, {past} in the baseline"


def describe_unjudged(scenario: ScenarioComparison) -> str:
    """Say that nothing is known of a scenario of which something was."""
    before = scenario.before
    past = f"{before.passed} of {before.judged}" if before else "none"
    return f"no iteration was judged, and {past} passed in the baseline"


def _format_differences(scenario: ScenarioComparison) -> str:
    return "; ".join(f"{d.condition} was {d.before}, is {d.after}" for d in scenario.differences)


def describe_set_aside(scenario: ScenarioComparison) -> str:
    """Say how many iterations are not compared, and of which side."""
    before, after = scenario.before, scenario.after
    if after is not None and after.set_aside:
        return f"{_format_share(after)} iterations {_is_or_are(after)} not comparable with the baseline"
    if before is None:
        return ""
    return f"{_format_share(before)} iterations of the baseline {_is_or_are(before)} not comparable"


def _format_share(one: ScenarioMetrics) -> str:
    return f"{one.set_aside} of {one.judged + one.set_aside}"


def _is_or_are(one: ScenarioMetrics) -> str:
    return "is" if one.set_aside == 1 else "are"


def describe_downgrade(scenario: ScenarioComparison) -> str:
    """Say what less is required of it than in the base."""
    before, now = (
        f"{(share or 0) * 100:.4g}%" for share in (scenario.demand_before, scenario.demand)
    )
    if scenario.demand is None:
        return f"it is advisory now, and {before} of its iterations had to pass in the baseline"
    return f"{now} of its iterations must pass now, {before} in the baseline"


def describe_passes(scenario: ScenarioComparison) -> str:
    """Return the passes of both sides: `4 of 5 now, 50 of 50 before`."""
    told = []
    if scenario.after is not None:
        told.append(f"{scenario.after.passed} of {scenario.after.judged} now")
    if scenario.before is not None:
        told.append(f"{scenario.before.passed} of {scenario.before.judged} before")
    return ", ".join(told)


def describe_needed_iterations(scenario: ScenarioComparison) -> str:
    """Say how many iterations would tell, or that the baseline has to grow first."""
    if scenario.needed_iterations is None:
        most, size = f"{MAX_ITERATIONS:,}", scenario.needed_baseline
        about = f"more than {most}" if size is None else f"about {size:,}"
        return f"the baseline needs {about} iterations; let more runs of the base branch accumulate"
    return f"with {scenario.needed_iterations} or more such a drop shows 4 times in 5"


def _increase_findings(
    figure: LimitedMetric, moved: MetricChange, allowed: float | None, level: float
) -> Iterator[ComparisonFinding]:
    if allowed is None or not moved.compared:
        return
    if moved.scenarios < moved.compared:
        yield ComparisonFinding("increase", MetricIncrease("not_measured", figure, moved, allowed))
    rise = compute_increase(moved)
    if rise is None or rise <= allowed:
        return
    if is_certain_increase(moved, allowed, level):
        yield ComparisonFinding("increase", MetricIncrease("certain", figure, moved, allowed))
    else:
        yield ComparisonFinding(
            "possible_increase", MetricIncrease("possible", figure, moved, allowed)
        )


def compute_increase(moved: MetricChange) -> float | None:
    """Return the relative change that was seen; None: it was not measured."""
    if moved.before is None or moved.after is None:
        return None
    if moved.before > 0:
        return moved.after / moved.before - 1
    return math.inf if moved.after > 0 else 0.0


def compute_least_increase(moved: MetricChange) -> float | None:
    """Return the lower end of the interval of a change, or without one the change itself."""
    return compute_increase(moved) if moved.interval is None else moved.interval[0]


def is_certain_increase(moved: MetricChange, allowed: float, level: float) -> bool:
    """Say whether more than chance stands behind a rise by more than is allowed.

    The permutation test has to say so at the level, and the interval, where there is one. What
    cost nothing at all in any iteration needs no test.
    """
    if moved.before == 0:
        return True
    is_above = moved.interval is None or moved.interval[0] > allowed
    return is_above and (moved.p_value is None or moved.p_value < level)


def _repetition_findings(found: Comparison) -> Iterator[ComparisonFinding]:
    """Say what of the baseline is no evidence of its own."""
    if found.copies:
        message = "the very results of a later run and do not count again; keep each run once"
        yield ComparisonFinding(
            "baseline", f"{found.copies} of {found.runs} runs of the baseline have {message}"
        )
