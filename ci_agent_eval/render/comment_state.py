"""What a comment says, in one word: the same for two reports that a reader would act on alike.

It stands in the comment itself, so that a later run can tell without keeping anything whether
there is something new to say. Figures are no part of it: they move with every run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from ci_agent_eval.analysis.comparison.model import Comparison, NoBaseline, ScenarioComparison
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.overruns import overruns

_DIGITS = 16
_LINE = re.compile(rf"<!-- agent-eval state=([0-9a-f]{{{_DIGITS}}}) -->", re.ASCII)


def state_of(report: Report) -> str:
    """Return the word: of verdict, of what does not pass or is over budget, of what changed."""
    parts = [report.verdict.conclusion, *sorted(map(_written, _parts(report)))]
    return hashlib.sha256(_written(parts).encode("ascii")).hexdigest()[:_DIGITS]


def state_line(state: str) -> str:
    """Return the line of a comment that holds the word; it is not shown."""
    return f"<!-- agent-eval state={state} -->"


def parse_state(body: str) -> str | None:
    """Return the word of a comment of ours; None where it has none."""
    _, _, rest = body.replace("\r\n", "\n").partition("\n")
    found = _LINE.fullmatch(rest.partition("\n")[0].strip())
    return found[1] if found else None


def differs_from_baseline(report: Report) -> bool | None:
    """Say whether anything fails or is not as in the baseline; None: there is none."""
    if not isinstance(report.comparison, Comparison):
        return None
    return not report.passed or any(map(_is_news, report.comparison.scenarios))


def _parts(report: Report) -> Iterator[Any]:
    for item in report.judged_scenarios():
        scenario, judgement = item.scenario, item.judgement
        if not item.is_passing:
            yield "not passing", scenario.scenario_id, scenario.agent, judgement.status
        if scenario.quarantine is not None and not item.is_passing:
            yield "quarantine", scenario.scenario_id, scenario.agent, scenario.in_quarantine
    for overrun in overruns(report):
        of = overrun.scenario
        name = (of.scenario_id, of.agent) if of else (None, None)
        yield "over", *name, overrun.label, overrun.custom, overrun.gates
    for case in report.summary.tests.failing:
        yield "test", case.title, case.outcome
    for finding in report.summary.findings:
        if finding.blocking:
            yield "finding", finding.kind, finding.where
    for reason in report.verdict.reasons:
        yield "reason", reason.kind, reason.scenario_id, reason.agent
    yield from _changes(report.comparison)


def _changes(found: Comparison | NoBaseline | None) -> Iterator[Any]:
    if isinstance(found, NoBaseline):
        yield "no baseline"
    elif found is not None:
        for one in filter(_is_news, found.scenarios):
            yield "changed", one.scenario_id, one.agent, one.change, one.call, one.newly_over


def _is_news(scenario: ScenarioComparison) -> bool:
    moved = scenario.change not in {"unchanged", "still_failing"}
    doubted = scenario.is_downgraded or scenario.thinned or scenario.flakier
    told = scenario.newly_over or scenario.differences or doubted
    return moved or scenario.call in {"regression", "undecided"} or bool(told)


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)
