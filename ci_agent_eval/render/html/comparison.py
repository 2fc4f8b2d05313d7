"""Base against head on the page: the figures, and each scenario's two sides beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ci_agent_eval.comparison.model import Difference, NoBaseline, ScenarioComparison, Side
from ci_agent_eval.comparison.remarks import aside
from ci_agent_eval.render import numbers
from ci_agent_eval.render.compared import CHANGES, FigureRow, comparison_of, figure_rows, method
from ci_agent_eval.render.html.caps import Shown
from ci_agent_eval.render.numbers import ABSENT
from ci_agent_eval.render.views import of
from ci_agent_eval.report import Report

_FIGURES: tuple[tuple[str, Callable[[Side], float | None], Callable[[float], str]], ...] = (
    ("pass rate", lambda side: side.pass_rate, numbers.percent),
    ("cost per episode", lambda side: side.cost_usd, numbers.money),
    ("tokens per episode", lambda side: side.tokens, numbers.count),
    ("tool calls per episode", lambda side: side.tool_calls, numbers.amount),
    ("p95 turn latency", lambda side: side.p95_latency_ms, numbers.milliseconds),
)

_CHIPS = {"newly_failing": "failed", "vanished": "failed", "still_failing": "failed"}
_CALLS = {"regression": "regression", "undecided": "not enough iterations to tell"}


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of a way, and whether it is where the ways part."""

    tool: str
    parted: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """A scenario of both sides, ready to be placed."""

    name: str
    agent: str | None
    change: str
    chip: str
    call: str
    p_value: str
    passes: tuple[str, str]
    figures: Sequence[tuple[str, str, str]]
    """What it is, before, now."""
    incomparable: str
    """How much of it is not comparable; empty: nothing is."""
    differences: Sequence[Difference]
    newly_over: Sequence[str]
    renamed_from: str | None
    place: str
    """Where the ways part; empty: they do not."""
    before: Sequence[Step]
    after: Sequence[Step]
    opened: bool


@dataclass(frozen=True, slots=True)
class Sides:
    """What the page shows of a comparison."""

    label: str
    method: str
    figures: Sequence[FigureRow]
    pairs: Sequence[Pair]
    unchanged: int
    """Scenarios of which nothing is to be said."""


def sides_of(report: Report, shown: Shown) -> Sides | None:
    """Return the page's comparison; None: nothing was compared."""
    found = comparison_of(report)
    if found is None:
        return None
    told = [scenario for scenario in sorted(found.scenarios, key=_weight) if _is_told(scenario)]
    return Sides(
        label=shown.name(found.label),
        method=method(found),
        figures=figure_rows(report),
        pairs=[_pair(scenario, shown) for scenario in shown.first(told)],
        unchanged=len(found.scenarios) - len(told),
    )


def why_none(report: Report, shown: Shown) -> str:
    """Return why nothing was compared although it was asked for; empty where it was not."""
    return shown.text(report.comparison.reason) if isinstance(report.comparison, NoBaseline) else ""


def _weight(scenario: ScenarioComparison) -> tuple[bool, bool, int]:
    changes = list(CHANGES)
    doubted = scenario.call in _CALLS
    return not (doubted or scenario.change in _CHIPS), not doubted, changes.index(scenario.change)


def _is_told(scenario: ScenarioComparison) -> bool:
    said = scenario.divergence, scenario.newly_over, scenario.renamed_from, scenario.differences
    return scenario.change != "unchanged" or scenario.call in _CALLS or any(said)


def _pair(scenario: ScenarioComparison, shown: Shown) -> Pair:
    parted = scenario.divergence
    call = parted.call if parted else 0
    before, after = (parted.before, parted.after) if parted else ((), ())
    return Pair(
        name=shown.name(scenario.scenario_id),
        agent=shown.name(scenario.agent) if scenario.agent else None,
        change=CHANGES[scenario.change],
        chip=_CHIPS.get(scenario.change, "passed" if scenario.change == "fixed" else "plain"),
        call=_CALLS.get(scenario.call, ""),
        p_value="" if scenario.p_value is None else numbers.p_value(scenario.p_value),
        passes=(_passes(scenario.before), _passes(scenario.after)),
        figures=_figures(scenario),
        incomparable=_incomparable(scenario),
        differences=[
            Difference(d.condition, shown.text(d.before), shown.text(d.after))
            for d in scenario.differences
        ],
        newly_over=[shown.name(name) for name in shown.first(scenario.newly_over)],
        renamed_from=shown.name(scenario.renamed_from) if scenario.renamed_from else None,
        place=_place(scenario, shown),
        before=_steps(before, call, shown),
        after=_steps(after, call, shown),
        opened=scenario.change in _CHIPS or scenario.call in _CALLS,
    )


def _incomparable(scenario: ScenarioComparison) -> str:
    if scenario.change == "not_comparable":
        return "Not comparable"
    told = aside(scenario) if scenario.differences else ""
    return told[:1].upper() + told[1:]


def _passes(side: Side | None) -> str:
    return ABSENT if side is None else of(side.passed, side.judged)


def _figures(scenario: ScenarioComparison) -> list[tuple[str, str, str]]:
    rows = []
    for name, figure, write in _FIGURES:
        sides = [None if s is None else figure(s) for s in (scenario.before, scenario.after)]
        if any(value is not None for value in sides):
            before, now = (ABSENT if value is None else write(value) for value in sides)
            rows.append((name, before, now))
    return rows


def _place(scenario: ScenarioComparison, shown: Shown) -> str:
    parted = scenario.divergence
    if parted is None:
        return ""
    argument = f", argument {shown.name(parted.argument)}" if parted.argument else ""
    return f"First divergence at turn {parted.turn}, tool call {parted.call}{argument}"


def _steps(names: Sequence[str], call: int, shown: Shown) -> list[Step]:
    return [
        Step(shown.name(name), number == call)
        for number, name in enumerate(shown.first(names), start=1)
    ]
