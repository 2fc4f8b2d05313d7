"""What the report for a terminal says of one scenario, test, budget or agreement."""

from __future__ import annotations

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.gate import Reason
from ci_agent_eval.gate.report import JudgedScenario
from ci_agent_eval.render.escape import terminal
from ci_agent_eval.render.known import KnownRow
from ci_agent_eval.render.links import line_number
from ci_agent_eval.render.markdown.waivers import hard_overruns, until
from ci_agent_eval.render.numbers import (
    ABSENT,
    NOT_MEASURED,
    count,
    counted,
    milliseconds,
    money,
    score,
)
from ci_agent_eval.render.overruns import Overrun
from ci_agent_eval.render.sentences import reason_sentence
from ci_agent_eval.render.terminal.layout import Entry
from ci_agent_eval.render.views import (
    Cause,
    Flaky,
    error_cause,
    first_cause,
    rate_of,
    skip_cause,
    title_of,
    unjudged_note,
)

NAME_LIMIT = 60
WHOLE_LIMIT = 1_000
"""Of a sentence that says what to do."""

USED = Entry("scenario", "passes, pass rate", "duration, tokens, cost of all together")
"""What stands above the iterations."""


def failing(item: JudgedScenario, note: str) -> Entry:
    """Return a scenario below its pass rate: the first cause, after our own `note` on it."""
    cause = first_cause(item.scenario)
    text = "; ".join(part for part in (note, _text(cause)) if part)
    return Entry(_name(item), _passes(item), text, _place(cause.file, cause.line))


def errored(item: JudgedScenario) -> Entry:
    """Return a scenario that the world broke, and by what first."""
    tally = item.scenario.tally
    cause = error_cause(item.scenario)
    errors = f"{count(tally.error)}/{count(tally.ran)}"
    return Entry(_name(item), errors, _text(cause), _place(cause.file, cause.line))


def skipped(item: JudgedScenario) -> Entry:
    """Return a scenario of which iterations were skipped, or never ran, and why."""
    cause = skip_cause(item.scenario)
    note = unjudged_note(item.scenario)
    return Entry(_name(item), note, _text(cause), _place(cause.file, cause.line))


def known(row: KnownRow) -> Entry:
    """Return a difference between the run and the scenario manifest."""
    name = row.scenario_id
    shown = "the whole suite" if name is None else terminal(name, NAME_LIMIT)
    detail = [terminal(row.detail, WHOLE_LIMIT)] if row.detail else []
    note = [] if row.gates else ["(does not gate)"]
    return Entry(shown, "", " ".join([row.what, *detail, *note]))


def test(case: JUnitCase) -> Entry:
    """Return a JUnit case that is no episode."""
    message = terminal(case.message) if case.message else ""
    return Entry(
        terminal(case.title, NAME_LIMIT), case.outcome, message, _place(case.file, case.line)
    )


def unproven(item: JudgedScenario) -> Entry:
    """Return a scenario whose test is marked to need no evidence."""
    return Entry(_name(item), _passes(item), _place(item.scenario.file, item.scenario.line))


def overrun(overrun: Overrun) -> Entry:
    """Return a budget that was exceeded or not measured."""
    scenario = overrun.scenario
    name = terminal(title_of(scenario), NAME_LIMIT) if scenario else "the whole suite"
    label = overrun.label or terminal(overrun.custom, NAME_LIMIT)
    over = "" if overrun.observed == NOT_MEASURED else f" ({overrun.over_by})"
    text = f"{overrun.observed}, limit {overrun.limit}{over}"
    return Entry(name, f"{label} ({overrun.strength})", text)


def flaky(found: Flaky) -> Entry:
    """Return what passed only on a retry."""
    times = counted(found.iterations, "iteration") if found.iterations else "test"
    return Entry(terminal(found.title, NAME_LIMIT), times, _place(found.file, found.line))


def iterations(item: JudgedScenario) -> Entry:
    """Return what the iterations of a scenario came to together."""
    scenario, used = item.scenario, []
    if scenario.duration_ms is not None:
        used.append(milliseconds(scenario.duration_ms))
    if scenario.tokens is not None:
        used.append(counted(scenario.tokens, "token"))
    if scenario.cost_usd is not None:
        used.append(money(scenario.cost_usd))
    return Entry(_name(item), _passes(item), ", ".join(used))


def measured(pair: tuple[JudgedScenario, Cause]) -> Entry:
    """Return an assertion that failed in an evaluation."""
    item, cause = pair
    found = item.scenario.evaluations
    mean = ABSENT if found.mean_score is None else score(found.mean_score)
    times = f", {count(cause.iterations)}x" if cause.iterations and cause.iterations > 1 else ""
    return Entry(_name(item), f"score {mean}{times}", _text(cause), _place(cause.file, cause.line))


def quarantined(item: JudgedScenario) -> Entry:
    """Return a scenario in quarantine: why it does not pass, until when, and who says so."""
    agreed = item.scenario.quarantine
    assert agreed is not None, "only what is in quarantine is shown"  # noqa: S101 - see above
    owner, reason = terminal(agreed.owner or "", NAME_LIMIT), terminal(agreed.reason)
    over = [terminal(name, NAME_LIMIT) for name in hard_overruns(item.scenario)]
    why = f"over budget: {', '.join(over)}; " if over and item.is_passing else ""
    text = f"{why}until {until(agreed)}; owner {owner}: {reason}"
    return Entry(_name(item), _passes(item), text, _place(item.scenario.file, item.scenario.line))


def accepted(reason: Reason) -> Entry:
    """Return what a team accepts for a while, or an entry that accepts nothing."""
    name = "" if reason.scenario_id is None else terminal(reason.scenario_id, NAME_LIMIT)
    agent = f" (agent {terminal(reason.agent, NAME_LIMIT)})" if reason.agent else ""
    return Entry(name + agent, "", terminal(reason_sentence(reason), WHOLE_LIMIT))


def _passes(item: JudgedScenario) -> str:
    tally = item.scenario.tally
    passes = f"{count(tally.passed)}/{count(tally.judged)}"
    return f"{passes}, {rate_of(item.scenario)}" if tally.judged > 1 else passes


def _name(item: JudgedScenario) -> str:
    return terminal(title_of(item.scenario), NAME_LIMIT)


def _text(cause: Cause) -> str:
    return ": ".join(terminal(text) for text in (cause.name, cause.reason) if text)


def _place(file: str | None, line: int | None) -> str:
    if not file:
        return ""
    number = line_number(line)
    return terminal(f"{file}:{number}" if number else file)
