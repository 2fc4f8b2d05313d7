"""What renderings show of a comparison, before it is escaped for one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.comparison.model import (
    Change,
    Comparison,
    Movement,
    NoBaseline,
    ScenarioComparison,
)
from ci_agent_eval.comparison.remarks import enough
from ci_agent_eval.render import numbers, views
from ci_agent_eval.render.numbers import ABSENT, counted
from ci_agent_eval.report import Report
from ci_agent_eval.summary import ScenarioSummary
from ci_agent_eval.waivers import Agreement, covering

PATH_STEPS = 40
"""Most tool calls of a sequence that a comment shows."""

CHANGES: dict[Change, str] = {
    "newly_failing": "newly failing",
    "still_failing": "still failing",
    "fixed": "fixed",
    "new": "new",
    "vanished": "vanished",
    "not_comparable": "not comparable",
    "unchanged": "unchanged",
}
"""What each change is called."""

_SHIFTED: tuple[Change, ...] = ("newly_failing", "still_failing", "fixed")


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A figure of the suite: of this run, of the baseline, and how it moved."""

    label: str
    value: str
    before: str = ABSENT
    change: str = ABSENT


def comparison_of(report: Report) -> Comparison | None:
    """Return what comparing found, where there was a baseline."""
    return report.comparison if isinstance(report.comparison, Comparison) else None


def figure_rows(report: Report) -> Sequence[FigureRow]:
    """Return every figure that was measured, beside the baseline's where it is compared."""
    found = comparison_of(report)
    rows = [FigureRow(label, value) for label, value in views.figures(report)]
    if found is None:
        return rows
    return [*(_compared(row, found) for row in rows), *_calls(found.tool_calls)]


def _compared(row: FigureRow, found: Comparison) -> FigureRow:
    if row.label == "scenarios passing":
        before = [s.before.passing for s in found.scenarios if s.before is not None]
        after = [s.after.passing for s in found.scenarios if s.after is not None]
        change = numbers.difference(after.count(True) - before.count(True))
        return FigureRow(row.label, row.value, views.of(before.count(True), len(before)), change)
    if row.label.startswith("pass rate"):
        return _moved(row, found.pass_rate, numbers.percent, points=True)
    if row.label == "cost per episode":
        return _moved(row, found.cost_usd, numbers.money)
    if row.label == "tokens per episode":
        return _moved(row, found.tokens, numbers.count)
    if row.label == "p95 turn latency":
        return _moved(row, found.p95_latency_ms, numbers.milliseconds)
    return row


def _calls(moved: Movement) -> Iterator[FigureRow]:
    if moved.before is not None and moved.after is not None and moved.before + moved.after:
        row = FigureRow("tool calls per episode", numbers.amount(moved.after))
        yield _moved(row, moved, numbers.amount)


def _moved(
    row: FigureRow, moved: Movement, write: Callable[[float], str], *, points: bool = False
) -> FigureRow:
    if moved.before is None or moved.after is None:
        return row
    if points:
        change = numbers.points(moved.after - moved.before)
    else:
        change = numbers.change(moved.before, moved.after, moved.interval)
    # The baseline is held against what is on both sides, which need not be the whole run.
    both = write(moved.after)
    same = row.value.partition(" (")[0] == both
    value = row.value if same else f"{row.value}; {both} on both sides"
    return FigureRow(row.label, value, write(moved.before), change)


def method(found: Comparison) -> str:
    """Say what the figures of the baseline are, and how a drop is told from chance."""
    both = counted(found.pass_rate.compared, "scenario")
    level = numbers.percent(found.level).replace(".0 ", " ")
    told = (
        f"Baseline of {counted(found.runs, 'run')}; its figures and the changes are means over "
        f"the {both} on both sides, each counted once, changes with their 95 % bootstrap "
        f"interval. Pass rates: Fisher's exact test, Benjamini-Hochberg at {level} over "
        f"{counted(found.tested, 'scenario')}."
    )
    if found.suite_p_value is None:
        return told
    lost, won = len(found.of("newly_failing")), len(found.of("fixed"))
    p_value = numbers.p_value(found.suite_p_value)
    return f"{told} Suite: {lost} newly failing, {won} fixed, McNemar's exact test, {p_value}."


Key = tuple[str, str | None]


def notes(report: Report) -> dict[Key, str]:
    """Return what stands behind a failing scenario's name: since when, and how sure."""
    found = comparison_of(report)
    return {} if found is None else {key_of(s): _note(s) for s in found.scenarios}


def key_of(scenario: ScenarioComparison | ScenarioSummary) -> Key:
    """Return what tells a scenario from others."""
    return scenario.scenario_id, scenario.agent


def _note(scenario: ScenarioComparison) -> str:
    if scenario.p_value is None or scenario.p_value == 1 or scenario.change not in _SHIFTED:
        return CHANGES[scenario.change]
    return f"{CHANGES[scenario.change]}, {numbers.p_value(scenario.p_value)}"


@dataclass(frozen=True, slots=True)
class Doubt:
    """A scenario that passes, or is gone, and that the baseline speaks against."""

    scenario: ScenarioComparison
    what: str
    gates: bool


def doubts(report: Report) -> Sequence[Doubt]:
    """Return regressions, drops that cannot be told, and what vanished; what gates first.

    What fails by itself has its row elsewhere, with a note; what was acknowledged, a list.
    """
    found = comparison_of(report)
    if found is None:
        return ()
    gating = {(r.kind, r.scenario_id, r.agent) for r in report.verdict.reasons}
    accepted = {
        (r.scenario_id, r.agent) for r in report.verdict.warnings if r.kind == "acknowledged"
    }
    failing = {
        key_of(item.scenario) for item in report.judged() if item.judgement.status == "failing"
    }
    told = [
        Doubt(s, what + _ended(s, report.verdict.acknowledged), (kind, *key_of(s)) in gating)
        for s in found.scenarios
        if key_of(s) not in failing | accepted
        for kind, what in _doubted(s)
    ]
    return sorted(told, key=lambda doubt: not doubt.gates)


def _ended(scenario: ScenarioComparison, agreed: Sequence[Agreement]) -> str:
    """Say that an acknowledgement is over, where there was one; one that holds is not seen here."""
    found = covering(agreed, *key_of(scenario))
    return "" if found is None else f"; its acknowledgement ended on {found.until}"


def _doubted(scenario: ScenarioComparison) -> Iterator[tuple[str, str]]:
    if scenario.call == "regression" and scenario.p_value is not None:
        yield "regression", f"regression, {numbers.p_value(scenario.p_value)}"
    elif scenario.call == "undecided":
        yield "undecided", f"not enough iterations to tell: {enough(scenario)}"
    elif scenario.change == "vanished":
        yield "vanished", "vanished: it did not run"


def passes_of(scenario: ScenarioComparison) -> tuple[str, str]:
    """Return the passes before and now."""
    sides = (scenario.before, scenario.after)
    before, now = (ABSENT if s is None else views.of(s.passed, s.judged) for s in sides)
    return before, now


def shifted(found: Comparison) -> Sequence[ScenarioComparison]:
    """Return the scenarios that changed and take another way, what is worse first."""
    said = ("regression", "undecided")
    changed = [
        s for s in found.scenarios if s.divergence and (s.change in _SHIFTED or s.call in said)
    ]
    return sorted(changed, key=lambda s: _SHIFTED.index(s.change) if s.change in _SHIFTED else 1)


def moved(found: Comparison) -> Sequence[ScenarioComparison]:
    """Return what was fixed, is new, renamed, newly over budget or not comparable."""
    changed = found.of("fixed", "new", "not_comparable")
    return [s for s in found.scenarios if s in changed or s.newly_over or s.renamed_from]


def base_line(report: Report) -> tuple[str, str] | None:
    """Return what the run was compared with, or why with nothing: our words, then foreign ones."""
    if isinstance(report.comparison, NoBaseline):
        return "no baseline:", report.comparison.reason
    found = comparison_of(report)
    return (
        None if found is None else (f"compared with {counted(found.runs, 'run')} of", found.label)
    )
