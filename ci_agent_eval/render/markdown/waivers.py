"""The sections of what was agreed: scenarios in quarantine, and what was acknowledged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_agent_eval.analysis.summary import ScenarioSummary
from ci_agent_eval.analysis.waivers import WaiverStatus
from ci_agent_eval.gate import Reason
from ci_agent_eval.gate.report import JudgedScenario, Report
from ci_agent_eval.render.escape import code_span
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown.blocks import Column, place
from ci_agent_eval.render.markdown.section import (
    ID_LIMIT,
    REASON_LIMIT,
    SCENARIO,
    WHERE,
    WHOLE_REASON_LIMIT,
    Section,
    cause_cell,
    of_list,
    of_table,
    passes_cells,
    scenario_cell,
)
from ci_agent_eval.render.numbers import ABSENT, count, counted
from ci_agent_eval.render.overruns import budget_label
from ci_agent_eval.render.sentences import reason_sentence
from ci_agent_eval.render.views import error_cause, first_cause


def quarantined(report: Report, links: Links) -> Section:
    """Return the scenarios in quarantine, and those that were: they gate again."""
    found = sorted(report.quarantined, key=lambda item: item.scenario.in_quarantine)
    columns = (
        SCENARIO,
        Column("passes", figures=True),
        Column("why it does not pass"),
        Column("until"),
        Column("owner"),
        Column("reason"),
        WHERE,
    )
    return Section(
        "quarantined",
        quarantine_title(report),
        ("scenario in quarantine", "scenarios in quarantine"),
        of_table(columns, found, lambda item: _row(item, links)),
        folded=all(item.scenario.in_quarantine for item in found),
    )


def quarantine_title(report: Report) -> str:
    """Say how many scenarios are in quarantine, how many of them fail, how many are out again."""
    return "; ".join(_title(report.quarantined))


def _title(found: Sequence[JudgedScenario]) -> Iterator[str]:
    held = [item for item in found if item.scenario.in_quarantine]
    if held:
        failing = sum(1 for item in held if not item.is_passing)
        note = f" ({count(failing)} not passing)" if failing else ""
        yield f"In quarantine, not gating: {counted(len(held), 'scenario')}{note}"
    if over := len(found) - len(held):
        yield f"{'quarantine' if held else 'Quarantine'} over, gating again: {count(over)}"


def until(agreed: WaiverStatus) -> str:
    """Say until when an agreement holds, or that it does not hold any more."""
    return f"{agreed.until}, over: it gates again" if agreed.expired else str(agreed.until)


def _row(item: JudgedScenario, links: Links) -> Sequence[str]:
    scenario, agreed = item.scenario, item.scenario.quarantine
    assert agreed is not None, "only what is in quarantine is here"  # noqa: S101 - see quarantined
    return (
        scenario_cell(scenario),
        *passes_cells(item, rated=False),
        _why(item),
        until(agreed),
        code_span(agreed.owner or "", limit=ID_LIMIT, cell=True),
        code_span(agreed.reason, limit=REASON_LIMIT, cell=True),
        place(scenario.file, scenario.line, links, cell=True),
    )


def _why(item: JudgedScenario) -> str:
    if item.is_passing:
        names = hard_overruns(item.scenario)
        shown = ", ".join(code_span(name, limit=ID_LIMIT, cell=True) for name in names)
        return f"over budget: {shown}" if shown else ABSENT
    failing = item.judgement.status == "failing"
    cause = first_cause(item.scenario) if failing else error_cause(item.scenario)
    return cause_cell(cause, REASON_LIMIT, cell=True)


def hard_overruns(scenario: ScenarioSummary) -> Sequence[str]:
    """Name the hard budgets that a scenario is over; a user's own name of one is hostile."""
    return [budget_label(f.violation) for f in scenario.violations if f.violation.hard]


def acceptances(report: Report) -> Sequence[Reason]:
    """Return what comparing found and was accepted, then what was accepted for nothing."""
    found = [reason for reason in report.verdict.warnings if reason.kind == "acknowledged"]
    return sorted(found, key=lambda reason: reason.scenario_id is None)


def acceptances_title(report: Report) -> str:
    """Say how much was accepted, and how many entries accept nothing."""
    found = acceptances(report)
    held = sum(1 for reason in found if reason.scenario_id is not None)
    needless = counted(len(found) - held, "entry", "entries")
    accepts = "accepts" if len(found) - held == 1 else "accept"
    parts = [f"Acknowledged, not gating: {count(held)}"] if held else []
    parts += [f"{needless} of the acknowledged {accepts} nothing"] if len(found) > held else []
    return "; ".join(parts)


def acknowledged(report: Report) -> Section:
    """Return what comparing found and a team accepts for a while."""
    found = acceptances(report)
    return Section(
        "acknowledged",
        acceptances_title(report),
        ("acknowledgement", "acknowledgements"),
        of_list(found, _line),
        folded=True,
    )


def _line(reason: Reason) -> str:
    message = code_span(reason_sentence(reason), limit=WHOLE_REASON_LIMIT)
    if reason.scenario_id is None:
        return message
    agent = f" (agent {code_span(reason.agent, limit=ID_LIMIT)})" if reason.agent else ""
    return f"{code_span(reason.scenario_id, limit=ID_LIMIT)}{agent}: {message}"
