"""What a comparison says that a gate weighs or a reader should know, sentence by sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.analysis.comparison.model import (
    Comparison,
    Movement,
    NoBaseline,
    ScenarioComparison,
    Side,
)
from ci_agent_eval.analysis.comparison.power import MOST_ITERATIONS

RemarkKind = Literal[
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


PUT_BACK = "put it back, or acknowledge it where this is meant"
"""What to do about a downgrade."""


@dataclass(frozen=True, slots=True)
class Increases:
    """By which share cost and latency may rise; None: by any."""

    cost: float | None = None
    latency: float | None = None


LimitedFigure = Literal["cost_usd", "p95_latency_ms"]
"""Figures of a `Comparison` that may be allowed to rise by so much only."""


@dataclass(frozen=True, slots=True)
class Increase:
    """A figure of the suite that rose by more than is allowed, or may have."""

    kind: Literal["certain", "possible", "not_measured"]
    """`possible`: it may be chance. `not_measured`: not in every scenario, on both sides."""
    figure: LimitedFigure
    moved: Movement
    allowed: float
    """Share by which it may rise."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that was found by comparing."""

    kind: RemarkKind
    message: str | Increase
    scenario: ScenarioComparison | None = None
    """None: it is about the suite."""
    advice: str = ""
    """What to do where nothing was agreed about it."""


def remarks(found: Comparison | NoBaseline, increases: Increases) -> Iterator[Remark]:
    """Yield everything worth a reason or a warning, by scenario, the suite's last."""
    if isinstance(found, NoBaseline):
        yield Remark("baseline", f"no baseline: {found.reason}")
        return
    for scenario in found.scenarios:
        yield from _of_scenario(scenario)
    yield from _increase("cost_usd", found.cost_usd, increases.cost, found.level)
    yield from _increase("p95_latency_ms", found.p95_latency_ms, increases.latency, found.level)
    yield from _repeated(found)


def _of_scenario(scenario: ScenarioComparison) -> Iterator[Remark]:
    if scenario.call == "regression":
        p_value = _p_value(scenario.p_value)
        yield Remark("regression", f"passes less often: {sides(scenario)} ({p_value})", scenario)
    elif scenario.call == "undecided":
        message = f"not enough iterations to tell: {sides(scenario)}; {enough(scenario)}"
        yield Remark("undecided", message, scenario)
    elif scenario.change == "vanished":
        yield Remark("vanished", "the baseline has it, and it did not run", scenario)
    elif scenario.change == "not_comparable":
        message = f"not comparable with the baseline: {_differences(scenario)}"
        yield Remark("not_comparable", message, scenario)
    elif scenario.change == "not_judged" and scenario.before and scenario.before.judged:
        yield Remark("not_judged", unjudged(scenario), scenario)
    if scenario.differences and scenario.change != "not_comparable":
        message = f"{aside(scenario)}: {_differences(scenario)}"
        yield Remark("not_comparable", message, scenario)
    yield from _of_iterations(scenario)
    if scenario.downgraded:
        yield Remark("downgraded", downgrade(scenario), scenario, PUT_BACK)
    if scenario.newly_over:
        budgets = ", ".join(scenario.newly_over)
        yield Remark("newly_over", f"newly over budget: {budgets}", scenario)


def _p_value(value: float | None) -> str:
    """Write an adjusted p-value as every rendering does."""
    return "adjusted p < 0.001" if (value or 0.0) < 0.001 else f"adjusted p = {value:.2g}"


def _of_iterations(scenario: ScenarioComparison) -> Iterator[Remark]:
    if scenario.thinned:
        yield Remark("fewer_iterations", thinning(scenario), scenario)
    if scenario.flakier:
        yield Remark("flakier", retries(scenario), scenario)


def thinning(scenario: ScenarioComparison) -> str:
    """Say how many fewer iterations were judged than before."""
    before, after = scenario.before, scenario.after
    usual, judged = before.latest_judged if before else 0, after.judged if after else 0
    were = "iteration was" if judged == 1 else "iterations were"
    seen = f"{judged} {were} judged, {usual} in the baseline's latest run"
    return f"{seen}: too few to show a drop; run as many as before"


def retries(scenario: ScenarioComparison) -> str:
    """Say how many iterations passed only on a retry, on both sides."""
    now, past = (
        f"{one.flaky} of {one.judged}" if one else "none"
        for one in (scenario.after, scenario.before)
    )
    return f"{now} iterations passed only on a retry, {past} in the baseline"


def unjudged(scenario: ScenarioComparison) -> str:
    """Say that nothing is known of a scenario of which something was."""
    before = scenario.before
    past = f"{before.passed} of {before.judged}" if before else "none"
    return f"no iteration was judged, and {past} passed in the baseline"


def _differences(scenario: ScenarioComparison) -> str:
    return "; ".join(f"{d.condition} was {d.before}, is {d.after}" for d in scenario.differences)


def aside(scenario: ScenarioComparison) -> str:
    """Say how many iterations are not compared, and of which side."""
    before, after = scenario.before, scenario.after
    if after is not None and after.set_aside:
        return f"{_share(after)} iterations {_are(after)} not comparable with the baseline"
    if before is None:
        return ""
    return f"{_share(before)} iterations of the baseline {_are(before)} not comparable"


def _share(one: Side) -> str:
    return f"{one.set_aside} of {one.judged + one.set_aside}"


def _are(one: Side) -> str:
    return "is" if one.set_aside == 1 else "are"


def downgrade(scenario: ScenarioComparison) -> str:
    """Say what less is required of it than in the base."""
    before, now = (
        f"{(share or 0) * 100:.4g}%" for share in (scenario.demand_before, scenario.demand)
    )
    if scenario.demand is None:
        return f"it is advisory now, and {before} of its iterations had to pass in the baseline"
    return f"{now} of its iterations must pass now, {before} in the baseline"


def sides(scenario: ScenarioComparison) -> str:
    """Return the passes of both sides: `4 of 5 now, 50 of 50 before`."""
    told = []
    if scenario.after is not None:
        told.append(f"{scenario.after.passed} of {scenario.after.judged} now")
    if scenario.before is not None:
        told.append(f"{scenario.before.passed} of {scenario.before.judged} before")
    return ", ".join(told)


def enough(scenario: ScenarioComparison) -> str:
    """Say how many iterations would tell, or that the baseline has to grow first."""
    if scenario.needed_iterations is None:
        most, size = f"{MOST_ITERATIONS:,}", scenario.needed_baseline
        about = f"more than {most}" if size is None else f"about {size:,}"
        return f"the baseline needs {about} iterations; let more runs of the base branch accumulate"
    return f"with {scenario.needed_iterations} or more such a drop shows 4 times in 5"


def _increase(
    figure: LimitedFigure, moved: Movement, allowed: float | None, level: float
) -> Iterator[Remark]:
    if allowed is None or not moved.compared:
        return
    if moved.scenarios < moved.compared:
        yield Remark("increase", Increase("not_measured", figure, moved, allowed))
    rise = increase_of(moved)
    if rise is None or rise <= allowed:
        return
    if is_certain(moved, allowed, level):
        yield Remark("increase", Increase("certain", figure, moved, allowed))
    else:
        yield Remark("possible_increase", Increase("possible", figure, moved, allowed))


def increase_of(moved: Movement) -> float | None:
    """Return the relative change that was seen; None: it was not measured."""
    if moved.before is None or moved.after is None:
        return None
    if moved.before > 0:
        return moved.after / moved.before - 1
    return math.inf if moved.after > 0 else 0.0


def least_increase(moved: Movement) -> float | None:
    """Return the lower end of the interval of a change, or without one the change itself."""
    return increase_of(moved) if moved.interval is None else moved.interval[0]


def is_certain(moved: Movement, allowed: float, level: float) -> bool:
    """Say whether more than chance stands behind a rise by more than is allowed.

    The permutation test has to say so at the level, and the interval, where there is one. What
    cost nothing at all in any iteration needs no test.
    """
    if moved.before == 0:
        return True
    is_above = moved.interval is None or moved.interval[0] > allowed
    return is_above and (moved.p_value is None or moved.p_value < level)


def _repeated(found: Comparison) -> Iterator[Remark]:
    """Say what of the baseline is no evidence of its own."""
    if found.copies:
        message = "the very results of a later run and do not count again; keep each run once"
        yield Remark(
            "baseline", f"{found.copies} of {found.runs} runs of the baseline have {message}"
        )
