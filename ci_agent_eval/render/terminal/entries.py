"""Entries of the terminal report: one scenario, test, budget or waiver each."""

from __future__ import annotations

from ci_agent_eval.render.escape import terminal
from ci_agent_eval.render.known import KnownRow
from ci_agent_eval.render.links import Place
from ci_agent_eval.render.numbers import count, counted
from ci_agent_eval.render.overruns import Overrun
from ci_agent_eval.render.report_view import FailingTest, FlakyRow, QuarantineRow, ReasonRow
from ci_agent_eval.render.scenario_name import ScenarioName
from ci_agent_eval.render.scenario_rows import Cause, ScenarioRow
from ci_agent_eval.render.terminal.layout import Entry

NAME_LIMIT = 60
WHOLE_LIMIT = 1_000
"""Of a sentence that says what to do."""

USED = Entry("scenario", "passes, pass rate", "duration, tokens, cost of all together")
"""Heading of the iterations."""


def failing(row: ScenarioRow) -> Entry:
    """Return a scenario below its pass rate: its note, then the first cause."""
    cause = row.first_cause
    text = "; ".join(part for part in (row.note, _text(cause)) if part)
    return Entry(_name(row), _passes(row), text, _place(cause.place))


def errored(row: ScenarioRow) -> Entry:
    """Return a scenario with infrastructure errors, and the first reason."""
    tally, cause = row.scenario.tally, row.error_cause
    errors = f"{count(tally.error)}/{count(tally.ran)}"
    return Entry(_name(row), errors, _text(cause), _place(cause.place))


def skipped(row: ScenarioRow) -> Entry:
    """Return a scenario with iterations that were skipped, or never ran, and why."""
    return Entry(_name(row), row.unjudged, _text(row.skip_cause), _place(row.place))


def known(row: KnownRow) -> Entry:
    """Return a difference between the run and the scenario manifest."""
    name = row.scenario_id
    shown = name_text(None if name is None else ScenarioName(name))
    detail = [terminal(row.detail, WHOLE_LIMIT)] if row.detail else []
    note = [] if row.gates else ["(does not gate)"]
    return Entry(shown, "", " ".join([row.text, *detail, *note]))


def test(found: FailingTest) -> Entry:
    """Return a JUnit case that is no episode."""
    case = found.case
    message = terminal(case.message) if case.message else ""
    return Entry(terminal(case.title, NAME_LIMIT), case.outcome, message, _place(found.place))


def unproven(row: ScenarioRow) -> Entry:
    """Return a scenario whose test is marked to need no evidence."""
    return Entry(_name(row), _passes(row), _place(row.place))


def overrun(pair: tuple[ScenarioRow | None, Overrun]) -> Entry:
    """Return a budget that was exceeded or not measured."""
    row, found = pair
    label = terminal(found.label, NAME_LIMIT) if found.is_custom else found.label
    over = f" ({found.over_by})" if found.is_measured else ""
    text = f"{found.observed}, limit {found.limit}{over}"
    return Entry(_name(row) if row else name_text(None), f"{label} ({found.strength})", text)


def flaky(found: FlakyRow) -> Entry:
    """Return a scenario or test that passed only on a retry."""
    times = counted(found.iterations, "iteration") if found.iterations else "test"
    return Entry(terminal(found.title, NAME_LIMIT), times, _place(found.place))


def iterations(row: ScenarioRow) -> Entry:
    """Return the totals of a scenario's iterations."""
    tokens = row.scenario.tokens
    used = [
        "" if row.duration.value is None else row.duration.text,
        "" if tokens is None else counted(tokens, "token"),
        "" if row.cost.value is None else row.cost.text,
    ]
    return Entry(_name(row), _passes(row), ", ".join(filter(None, used)))


def measured(pair: tuple[ScenarioRow, Cause]) -> Entry:
    """Return an assertion that failed in an evaluation."""
    row, cause = pair
    times = f", {count(cause.iterations)}x" if cause.iterations and cause.iterations > 1 else ""
    figure = f"score {row.score.text}{times}"
    return Entry(_name(row), figure, _text(cause), _place(cause.place))


def quarantined(item: QuarantineRow) -> Entry:
    """Return a scenario in quarantine: why it does not pass, the last day, owner and reason."""
    row, owner, reason = item.row, terminal(item.owner, NAME_LIMIT), terminal(item.reason)
    over = ", ".join(terminal(name, NAME_LIMIT) for name in row.hard_overruns)
    why = f"over budget: {over}; " if over and row.is_passing else ""
    text = f"{why}until {item.until}; owner {owner}: {reason}"
    return Entry(_name(row), _passes(row), text, _place(row.place))


def accepted(reason: ReasonRow) -> Entry:
    """Return an acknowledged regression, or an entry that accepts nothing."""
    name = "" if reason.name is None else name_text(reason.name)
    return Entry(name, "", terminal(reason.sentence, WHOLE_LIMIT))


def name_text(name: ScenarioName | None) -> str:
    """Return a scenario's id and agent, each cut to a limit of its own; None is the suite."""
    if name is None:
        return "the whole suite"
    agent = "" if name.agent is None else f" (agent {terminal(name.agent, NAME_LIMIT)})"
    return terminal(name.scenario_id, NAME_LIMIT) + agent


def _place(place: Place) -> str:
    """Return `file:line`; empty without a file."""
    return terminal(place.text) if place.file else ""


def _passes(row: ScenarioRow) -> str:
    passes = row.passes.replace(" ", "")
    return f"{passes}, {row.pass_rate.text}" if row.is_rated else passes


def _name(row: ScenarioRow) -> str:
    return terminal(row.name.title, NAME_LIMIT)


def _text(cause: Cause) -> str:
    return ": ".join(terminal(text) for text in (cause.name, cause.reason) if text)
