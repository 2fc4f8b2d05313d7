"""Base against head on the page: the figures, and each scenario's two sides beside each other."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.analysis.comparison.findings import describe_set_aside
from ci_agent_eval.analysis.comparison.model import (
    ConditionDifference,
    NoBaseline,
    ScenarioComparison,
    ScenarioMetrics,
)
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.baseline_findings import Doubt, by_scenario
from ci_agent_eval.render.comparison import (
    CHANGES,
    FigureRow,
    Key,
    call_of,
    change_of,
    comparison_of,
    figure_rows,
    key_of,
    method,
    sureness,
)
from ci_agent_eval.render.html.beside import Beside
from ci_agent_eval.render.html.caps import Shown
from ci_agent_eval.render.numbers import ABSENT
from ci_agent_eval.render.trajectory_diff import has_changed, place_of, ways_of
from ci_agent_eval.render.views import of

_FIGURES: tuple[
    tuple[str, Callable[[ScenarioMetrics], float | None], Callable[[float], str]], ...
] = (
    ("pass rate", lambda side: side.pass_rate, numbers.percent),
    ("cost per episode", lambda side: side.cost_usd, numbers.money),
    ("tokens per episode", lambda side: side.tokens, numbers.count),
    ("tool calls per episode", lambda side: side.tool_calls, numbers.amount),
    ("p95 turn latency", lambda side: side.p95_latency_ms, numbers.milliseconds),
)

_CHIPS = {"newly_failing": "failed", "vanished": "failed", "still_failing": "failed"}


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
    chips: Sequence[tuple[str, str]]
    """What became of it, and whether its pass rate fell: the kind of chip, and its words."""
    sureness: str
    passes: tuple[str, str]
    figures: Sequence[tuple[str, str, str]]
    """What it is, before, now."""
    incomparable: str
    """How much of it is not comparable; empty: nothing is."""
    differences: Sequence[ConditionDifference]
    apart: bool
    """Whether they keep the whole scenario from being compared, not some iterations."""
    newly_over: Sequence[str]
    renamed_from: str | None
    place: str
    """Where the ways part; empty: they do not."""
    before: Sequence[Step]
    after: Sequence[Step]
    talks: Mapping[str, Any]
    """A conversation of each side, for the page's script; empty: none is shown."""
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


def sides_of(report: Report, shown: Shown, beside: Beside) -> Sides | None:
    """Return the page's comparison; None: nothing was compared."""
    found = comparison_of(report)
    if found is None:
        return None
    against = by_scenario(report)
    gates = {key for key, doubts in against.items() if any(doubt.gates for doubt in doubts)}
    ordered = sorted(found.scenarios, key=lambda scenario: _weight(scenario, gates))
    told = [s for s in ordered if key_of(s) in against or _is_told(s)]
    return Sides(
        label=shown.name(found.label),
        method=method(found),
        figures=figure_rows(report),
        pairs=[_pair(s, shown, against.get(key_of(s), ()), beside) for s in shown.first(told)],
        unchanged=len(found.scenarios) - len(told),
    )


def why_none(report: Report, shown: Shown) -> str:
    """Return why nothing was compared although it was asked for; empty where it was not."""
    return shown.text(report.comparison.reason) if isinstance(report.comparison, NoBaseline) else ""


_TURNS = list(CHANGES)
_CALLS = ("regression", "undecided")


def _weight(scenario: ScenarioComparison, gates: Container[Key]) -> tuple[bool, float, int]:
    """Return how early a reader needs it: what gates, then what the tests and the checks say."""
    call = _CALLS.index(scenario.call) if scenario.call in _CALLS else len(_CALLS)
    change = _TURNS.index(scenario.change) if scenario.change in _TURNS else len(_TURNS)
    over = bool(scenario.newly_over) / 2
    is_gating = key_of(scenario) in gates or scenario.change == "newly_failing"
    return not is_gating, call if _is_trouble(scenario) else len(_CALLS) + 1 - over, change


def _is_trouble(scenario: ScenarioComparison) -> bool:
    return scenario.call in _CALLS or scenario.change in _CHIPS


def _is_told(scenario: ScenarioComparison) -> bool:
    said = scenario.divergence, scenario.newly_over, scenario.renamed_from, scenario.differences
    doubted = scenario.is_downgraded, scenario.thinned, scenario.flakier
    return scenario.change != "unchanged" or scenario.call in _CALLS or any((*said, *doubted))


def _chips(scenario: ScenarioComparison, against: Sequence[Doubt]) -> Iterator[tuple[str, str]]:
    called = call_of(scenario)
    # That it passes still would contradict what is said against it.
    if scenario.change != "unchanged" or not (called or against):
        plain = "passed" if scenario.change == "fixed" else "plain"
        yield _CHIPS.get(scenario.change, plain), change_of(scenario)
    gates: dict[str, bool] = {doubt.reason.kind: doubt.gates for doubt in against}
    if called:
        # What fails by itself has no doubt beside it.
        gates_by_rate = gates.get(scenario.call, scenario.required and scenario.change in _CHIPS)
        yield "failed" if gates_by_rate and scenario.call == "regression" else "warning", called
    for kind, is_gating in gates.items():
        if kind not in {*_CALLS, scenario.change}:
            yield "failed" if is_gating else "warning", kind.replace("_", " ")
    if scenario.newly_over:
        yield "warning", "newly over budget"


def _pair(
    scenario: ScenarioComparison, shown: Shown, against: Sequence[Doubt], beside: Beside
) -> Pair:
    parted = scenario.divergence
    call = parted.call if parted else 0
    before, after = ways_of(parted) if parted else ((), ())
    return Pair(
        name=shown.name(scenario.scenario_id),
        agent=shown.name(scenario.agent) if scenario.agent else None,
        chips=list(_chips(scenario, against)),
        sureness=sureness(scenario),
        passes=(_passes(scenario.before), _passes(scenario.after)),
        figures=_figures(scenario),
        incomparable=_incomparable(scenario),
        differences=[
            ConditionDifference(d.condition, shown.text(d.before), shown.text(d.after))
            for d in scenario.differences
        ],
        apart=scenario.change == "not_comparable",
        newly_over=[shown.name(name) for name in shown.first(scenario.newly_over)],
        renamed_from=shown.name(scenario.renamed_from) if scenario.renamed_from else None,
        place=_place(scenario, shown),
        before=_steps(before, call, shown),
        after=_steps(after, call, shown),
        talks=beside.of(scenario) if has_changed(scenario) else {},
        opened=any(doubt.gates for doubt in against)
        or scenario.change in _CHIPS
        or scenario.call in _CALLS,
    )


def _incomparable(scenario: ScenarioComparison) -> str:
    if scenario.change == "not_comparable":
        return "Not comparable"
    told = describe_set_aside(scenario) if scenario.differences else ""
    return told[:1].upper() + told[1:]


def _passes(side: ScenarioMetrics | None) -> str:
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
    return f"First divergence at {place_of(parted)}{argument}"


def _steps(names: Sequence[str], call: int, shown: Shown) -> list[Step]:
    return [
        Step(shown.name(name), number == call)
        for number, name in enumerate(shown.first(names), start=1)
    ]
