"""Entries of the terminal report: one scenario, test, budget or waiver each."""

from __future__ import annotations

from ci_agent_eval.render.adaptive_stops import describe_stop
from ci_agent_eval.render.budget_overruns import BudgetOverrun
from ci_agent_eval.render.escape import escape_terminal
from ci_agent_eval.render.links import Place
from ci_agent_eval.render.manifest_differences import ManifestDifference
from ci_agent_eval.render.numbers import count_noun, format_count
from ci_agent_eval.render.report_view import FailingTest, FlakyRow, QuarantineRow, ReasonRow
from ci_agent_eval.render.scenario_name import ScenarioName
from ci_agent_eval.render.scenario_rows import Cause, ScenarioRow
from ci_agent_eval.render.terminal.layout import TerminalEntry

NAME_LIMIT = 60
WHOLE_LIMIT = 1_000
"""Of a sentence with advice."""

USED = TerminalEntry("scenario", "passes, pass rate", "duration, tokens, cost of all together")
"""Heading of the iterations."""


def build_failing(row: ScenarioRow) -> TerminalEntry:
    """Return a scenario below its pass rate: its note, then the first cause."""
    cause = row.first_cause
    text = "; ".join(part for part in (row.note, _format_cause(cause)) if part)
    return TerminalEntry(_format_title(row), _format_passes(row), text, _format_place(cause.place))


def build_errored(row: ScenarioRow) -> TerminalEntry:
    """Return a scenario with infrastructure errors, and the first reason."""
    tally, cause = row.scenario.tally, row.error_cause
    errors = f"{format_count(tally.error)}/{format_count(tally.ran)}"
    return TerminalEntry(
        _format_title(row), errors, _format_cause(cause), _format_place(cause.place)
    )


def build_skipped(row: ScenarioRow) -> TerminalEntry:
    """Return a scenario with iterations that were skipped, or never ran, and why."""
    return TerminalEntry(
        _format_title(row), row.unjudged, _format_cause(row.skip_cause), _format_place(row.place)
    )


def build_difference(row: ManifestDifference) -> TerminalEntry:
    """Return a difference between the run and the scenario manifest."""
    name = row.scenario_id
    shown = format_name(None if name is None else ScenarioName(name))
    detail = [escape_terminal(row.detail, WHOLE_LIMIT)] if row.detail else []
    note = [] if row.gates else ["(does not gate)"]
    return TerminalEntry(shown, "", " ".join([row.text, *detail, *note]))


def build_test(found: FailingTest) -> TerminalEntry:
    """Return a JUnit case that is no episode."""
    case = found.case
    message = escape_terminal(case.message) if case.message else ""
    return TerminalEntry(
        escape_terminal(case.title, NAME_LIMIT), case.outcome, message, _format_place(found.place)
    )


def build_unproven(row: ScenarioRow) -> TerminalEntry:
    """Return a scenario that needs no evidence."""
    return TerminalEntry(_format_title(row), _format_passes(row), _format_place(row.place))


def build_overrun_entry(pair: tuple[ScenarioRow | None, BudgetOverrun]) -> TerminalEntry:
    """Return a budget that was exceeded or not measured."""
    row, found = pair
    label = escape_terminal(found.label, NAME_LIMIT) if found.is_custom else found.label
    over = f" ({found.over_by})" if found.is_measured else ""
    text = f"{found.observed}, limit {found.limit}{over}"
    return TerminalEntry(
        _format_title(row) if row else format_name(None), f"{label} ({found.strength})", text
    )


def build_flaky(found: FlakyRow) -> TerminalEntry:
    """Return a scenario or test that passed only on a retry."""
    times = count_noun(found.iterations, "iteration") if found.iterations else "test"
    return TerminalEntry(
        escape_terminal(found.title, NAME_LIMIT), times, _format_place(found.place)
    )


def build_iterations(row: ScenarioRow) -> TerminalEntry:
    """Return the totals of a scenario's iterations."""
    tokens = row.scenario.tokens
    used = [
        describe_stop(row.scenario),
        "" if row.duration.value is None else row.duration.text,
        "" if tokens is None else count_noun(tokens, "token"),
        "" if row.cost.value is None else row.cost.text,
    ]
    return TerminalEntry(_format_title(row), _format_passes(row), ", ".join(filter(None, used)))


def build_measured(pair: tuple[ScenarioRow, Cause]) -> TerminalEntry:
    """Return an assertion that failed in an evaluation."""
    row, cause = pair
    times = (
        f", {format_count(cause.iterations)}x" if cause.iterations and cause.iterations > 1 else ""
    )
    figure = f"score {row.score.text}{times}"
    return TerminalEntry(
        _format_title(row), figure, _format_cause(cause), _format_place(cause.place)
    )


def build_quarantined(item: QuarantineRow) -> TerminalEntry:
    """Return a scenario in quarantine: why it does not pass, the last day, owner and reason."""
    row, owner, reason = (
        item.row,
        escape_terminal(item.owner, NAME_LIMIT),
        escape_terminal(item.reason),
    )
    over = ", ".join(escape_terminal(name, NAME_LIMIT) for name in row.hard_overruns)
    why = f"over budget: {over}; " if over and row.is_passing else ""
    text = f"{why}until {item.until}; owner {owner}: {reason}"
    return TerminalEntry(_format_title(row), _format_passes(row), text, _format_place(row.place))


def build_acknowledged(reason: ReasonRow) -> TerminalEntry:
    """Return an acknowledged regression, or an entry that accepts nothing."""
    name = "" if reason.name is None else format_name(reason.name)
    return TerminalEntry(name, "", escape_terminal(reason.sentence, WHOLE_LIMIT))


def format_name(name: ScenarioName | None) -> str:
    """Return a scenario's id and agent, each cut to the limit; None is the suite."""
    if name is None:
        return "the whole suite"
    agent = "" if name.agent is None else f" (agent {escape_terminal(name.agent, NAME_LIMIT)})"
    return escape_terminal(name.scenario_id, NAME_LIMIT) + agent


def _format_place(place: Place) -> str:
    """Return `file:line`; empty without a file."""
    return escape_terminal(place.text) if place.file else ""


def _format_passes(row: ScenarioRow) -> str:
    passes = row.passes.replace(" ", "")
    return f"{passes}, {row.pass_rate.text}" if row.is_rated else passes


def _format_title(row: ScenarioRow) -> str:
    return escape_terminal(row.name.title, NAME_LIMIT)


def _format_cause(cause: Cause) -> str:
    return ": ".join(escape_terminal(text) for text in (cause.name, cause.reason) if text)
