"""The folds of the report: details that a reader opens only if the cards leave a question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ci_agent_eval.analysis.comparison.model import ScenarioComparison
from ci_agent_eval.analysis.reliability import Reliability
from ci_agent_eval.contract.wording import build_natural_key
from ci_agent_eval.render.behaviour_diff import (
    MOST_DIVERGING,
    describe_divergence,
    list_trajectory_lines,
)
from ci_agent_eval.render.comparison_wording import CHANGES, describe_method, list_diverging
from ci_agent_eval.render.escape import code_block, code_span
from ci_agent_eval.render.markdown.phrases import (
    TableColumn,
    render_list,
    render_names,
    render_phrase,
    render_table,
)
from ci_agent_eval.render.numbers import (
    count_noun,
    format_count,
    format_milliseconds,
    format_money,
    format_percent,
)
from ci_agent_eval.render.phrases import (
    Phrase,
    Quoted,
    ScenarioName,
    join_phrases,
    quote_name,
    quote_place,
)
from ci_agent_eval.render.report_view import ReportView
from ci_agent_eval.render.scenario_rows import Cause, ScenarioRow
from ci_agent_eval.render.suite_figures import SuiteFigure

SENTENCE_LIMIT = 300
FEW_TRIES = 3
"""Chances are shown for this number of tries, and for the largest number."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fold:
    """A closed part of the report."""

    title: str
    body: str


def build_folds(view: ReportView, most: int) -> tuple[Fold, ...]:
    """Return the folds that are not empty; `most` is the number of names or lines in each."""
    found = (build(view, most) for build in _FOLDS)
    return tuple(fold for fold in found if fold is not None)


def _build_diverging(view: ReportView, _most: int) -> Fold | None:
    """Return the tool calls of scenarios that behave otherwise and pass."""
    rows = list_diverging(view.comparison)
    if not rows:
        return None
    makes = "makes" if len(rows) == 1 else "make"
    body = "\n\n".join(map(_render_diff, rows[:MOST_DIVERGING]))
    if (rest := len(rows) - MOST_DIVERGING) > 0:
        body += f"\n\nand {format_count(rest)} more"
    return Fold(f"{count_noun(len(rows), 'scenario')} {makes} other tool calls", body)


def _render_diff(scenario: ScenarioComparison) -> str:
    if scenario.divergence is None:
        return ""
    name = quote_name(ScenarioName(scenario.scenario_id, scenario.agent))
    where = render_phrase((*name, f", {describe_divergence(scenario.divergence)}"))
    lines = "\n".join(list_trajectory_lines(scenario.divergence))
    return f"{where}:\n\n{code_block(lines, 20_000, 'diff')}"


def _build_figures(view: ReportView, most: int) -> Fold | None:
    """Return all figures, the iterations, and how they are computed."""
    if not view.scenarios:
        return None
    found = view.comparison
    parts = [_render_figures(view)]
    if found is not None:
        parts += [_render_scenario_changes(view, most), describe_method(found)]
    parts.append(_render_iterations(view, most))
    title = "All figures" if found is None else "All figures, and how sure they are"
    return Fold(title, "\n\n".join(part for part in parts if part))


def _render_figures(view: ReportView) -> str:
    found = view.comparison
    columns = [TableColumn("figure"), TableColumn("this run", figures=True)]
    if found is not None:
        label = code_span(found.label, limit=60, cell=True)
        columns.insert(1, TableColumn(label, figures=True))
        columns.append(TableColumn("change", figures=True))
    rows = [_render_figure_row(row, compared=found is not None) for row in view.compared_figures]
    return render_table(columns, rows)


def _render_figure_row(row: SuiteFigure, *, compared: bool) -> Sequence[str]:
    if not compared:
        return row.label, row.text
    change = f"{row.change}, {row.certainty}" if row.certainty else row.change
    return row.label, row.before, row.text, change


def _render_scenario_changes(view: ReportView, most: int) -> str:
    """Return the scenarios whose cost, tokens or latency rose for certain."""
    found = [
        f"{render_phrase(quote_name(finding.name))}: {finding.text}"
        for finding in view.baseline_findings
        if finding.kind == "scenario_increase" and finding.name is not None
    ]
    return render_first(found, most, str)


def _render_iterations(view: ReportView, most: int) -> str:
    rows = view.repeated_scenarios
    return f"Iterations:\n\n{render_first(rows, most, _write_iterations)}" if rows else ""


def _write_iterations(row: ScenarioRow) -> str:
    used = row.scenario
    parts = [
        f"passes {row.passes}",
        row.pass_rate,
        *_format_tries(used.reliability),
        "" if used.duration_ms is None else format_milliseconds(used.duration_ms),
        "" if used.cost_usd is None else format_money(used.cost_usd),
        "" if used.tokens is None else f"{format_count(used.tokens)} tokens",
    ]
    name = " ".join((render_phrase(quote_name(row.name)), *(f"({one})" for one in row.remarks)))
    return f"{name}: {', '.join(part for part in parts if part)}"


def _format_tries(found: Sequence[Reliability]) -> Iterator[str]:
    """Yield pass@k and pass^k for few tries and for the most."""
    few = [one for one in found if one.k <= FEW_TRIES][-1:]
    for one in (*few, *(one for one in found[-1:] if one not in few)):
        k = format_count(one.k)
        yield f"`pass@{k}` {format_percent(one.pass_at_k)}"
        yield f"`pass^{k}` {format_percent(one.pass_hat_k)}"


def _build_evaluations(view: ReportView, most: int) -> Fold | None:
    """Return every conversation of evaluations, the failed and the errored ones first."""
    rows = sorted(
        view.evaluations,
        key=lambda row: (not row.scenario.tally.failed, not row.scenario.tally.error),
    )
    if not rows:
        return None
    return Fold(view.evaluations_title, render_first(rows, most, _write_evaluation))


def _write_evaluation(row: ScenarioRow) -> str:
    found = row.scenario.evaluations
    parts = [f"{format_count(found.passed)}/{format_count(found.conversations)} passed"]
    if row.change == "newly_failing":
        parts.append(CHANGES[row.change])
    parts += [f"score {row.score}"] if row.score else []
    if found.assertions:
        passed = format_count(found.assertions_passed)
        parts.append(f"{passed}/{format_count(found.assertions)} assertions")
    causes: Sequence[Cause] = row.causes if row.scenario.tally.failed else ()
    if row.scenario.tally.error:
        causes = (*causes, row.error_cause)
    texts = [render_phrase(_write_cause(cause)) for cause in causes]
    name = code_span(row.name.title, limit=120)
    return " · ".join([f"{name} {', '.join(parts)}", *texts])


def _write_cause(cause: Cause) -> Phrase:
    texts = [(Quoted(text, SENTENCE_LIMIT),) for text in (cause.name, cause.reason) if text]
    place = quote_place(cause.place)
    return join_phrases([join_phrases(texts, ": "), (place,) if place else ()], ", ")


def _build_passing(view: ReportView, most: int) -> Fold | None:
    """Return the names of the scenarios that passed."""
    rows = [
        row
        for row in view.scenarios
        if row.is_passing
        and not row.is_only_measured
        and not (row.fails_by_baseline or row.fails_by_budget)
    ]
    tests = view.tests.tally
    counts = [count_noun(len(rows), "passing scenario")] if rows else []
    if tests.passed:
        counts.append(count_noun(tests.passed, "passing test"))
    if tests.skipped:
        counts.append(f"{format_count(tests.skipped)} skipped")
    names = sorted((row.name.title for row in rows), key=build_natural_key)
    if not names:
        return None
    return Fold(", ".join(counts), _join_names(names, most))


def _join_names(names: Sequence[str], most: int) -> str:
    shown = ", ".join(render_names(list(names[:most])))
    rest = len(names) - most
    return f"{shown}, and {format_count(rest)} more" if rest > 0 else shown


def _build_flaky(view: ReportView, most: int) -> Fold | None:
    if not view.flaky:
        return None
    title = f"{format_count(len(view.flaky))} flaky: passed only on a retry"
    names = sorted((title for title, *_ in view.flaky), key=build_natural_key)
    return Fold(title, _join_names(names, most))


def _build_advisory(view: ReportView, most: int) -> Fold | None:
    rows = view.failing_advisory_scenarios
    if not rows:
        return None
    title = f"Advisory, not gating: {count_noun(len(rows), 'failing scenario')}"
    return Fold(title, render_first(rows, most, _write_failing))


def _write_failing(row: ScenarioRow) -> str:
    note = f", {row.note}" if row.note else ""
    head: Phrase = (*quote_name(row.name), f" {row.passes}{note}")
    return render_phrase(join_phrases([head, _write_cause(row.first_cause)], " · "))


def _build_warnings(view: ReportView, most: int) -> Fold | None:
    found = [(row, cause) for row in view.scenarios for cause in row.warnings]
    if not found:
        return None
    title = f"{count_noun(len(found), 'failed check')} that only warn"
    return Fold(title, render_first(found, most, lambda pair: _write_warning(*pair)))


def _write_warning(row: ScenarioRow, cause: Cause) -> str:
    return render_phrase(join_phrases([quote_name(row.name), _write_cause(cause)], ": "))


def _build_quarantine(view: ReportView, most: int) -> Fold | None:
    if not view.quarantined:
        return None
    found = sorted(view.quarantined, key=lambda row: row.scenario.in_quarantine)
    return Fold(view.quarantine_title, render_first(found, most, _write_quarantined))


def _write_quarantined(row: ScenarioRow) -> str:
    entry = row.scenario.quarantine
    head: Phrase = (*quote_name(row.name), f" {row.passes} until {row.quarantined_until}")
    owner: Phrase = (" (", Quoted(entry.owner), ")") if entry and entry.owner else ()
    reason = Quoted(entry.reason if entry else "", SENTENCE_LIMIT)
    return render_phrase((*head, *owner, ": ", reason))


def _build_acknowledged(view: ReportView, most: int) -> Fold | None:
    if not view.acknowledged:
        return None

    def write(at: int) -> str:
        reason = view.acknowledged[at]
        sentence: Phrase = (Quoted(reason.sentence, SENTENCE_LIMIT),)
        named = () if reason.name is None else quote_name(reason.name)
        return render_phrase(join_phrases([named, sentence], ": "))

    lines = render_first(range(len(view.acknowledged)), most, write)
    return Fold(view.acknowledged_title, lines)


def render_first(found: Sequence[T], most: int, write: Callable[[T], str]) -> str:
    """Return a list of the first items, and the number of the others."""
    lines = render_list(map(write, found[:most]))
    rest = len(found) - most
    return f"{lines}\n\nand {format_count(rest)} more" if rest > 0 else lines


_FOLDS: tuple[Callable[[ReportView, int], Fold | None], ...] = (
    _build_diverging,
    _build_figures,
    _build_evaluations,
    _build_passing,
    _build_flaky,
    _build_advisory,
    _build_warnings,
    _build_quarantine,
    _build_acknowledged,
)
"""In their order; the last are dropped first where the report is too long."""
