"""The state of a comment: a hash that is equal for reports with the same failures and changes.

The comment holds it, so that a later run can detect news without any storage. Figures are not
part of it, because they differ in every run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from ci_agent_eval.analysis.comparison.model import ScenarioComparison
from ci_agent_eval.render.phrases import get_key
from ci_agent_eval.render.report_view import ReportView

_DIGITS = 16
_NO_KEY = (None, None)
_LINE = re.compile(rf"<!-- agent-eval state=([0-9a-f]{{{_DIGITS}}}) -->", re.ASCII)


def compute_state(view: ReportView) -> str:
    """Return a hash of the verdict, of all that fails or is over budget, and of all changes."""
    parts = [view.conclusion, *sorted(map(_dump_json, _list_state_parts(view)))]
    return hashlib.sha256(_dump_json(parts).encode("ascii")).hexdigest()[:_DIGITS]


def render_state_line(state: str) -> str:
    """Return the hidden line of a comment that holds the state."""
    return f"<!-- agent-eval state={state} -->"


def parse_state(body: str) -> str | None:
    """Return the state that a comment holds; None: it holds none."""
    _, _, rest = body.replace("\r\n", "\n").partition("\n")
    found = _LINE.fullmatch(rest.partition("\n")[0].strip())
    return found[1] if found else None


def differs_from_baseline(view: ReportView) -> bool | None:
    """Say whether anything fails or is not as in the baseline; None: there is none."""
    if view.comparison is None:
        return None
    return not view.has_passed or any(map(_is_news, view.comparison.scenarios))


def _list_state_parts(view: ReportView) -> Iterator[Any]:
    for row in view.scenarios:
        if not row.is_passing:
            yield "not passing", *row.key, row.status
        if row.scenario.quarantine is not None and not row.is_passing:
            yield "quarantine", *row.key, row.scenario.in_quarantine
    for over, overrun in view.overruns:
        labels = (None, overrun.label) if overrun.is_custom else (overrun.label, "")
        yield "over", *(over.key if over else _NO_KEY), *labels, overrun.gates
    for case in view.tests.failing:
        yield "test", case.title, case.outcome
    for found in view.findings:
        if found.gates:
            yield "finding", found.finding.kind, found.where
    for reason in view.reasons:
        yield "reason", reason.kind, *(reason.key or _NO_KEY)
    yield from _list_changes(view)


def _list_changes(view: ReportView) -> Iterator[Any]:
    if view.no_baseline is not None:
        yield "no baseline"
    for one in filter(_is_news, view.comparison.scenarios if view.comparison else ()):
        yield "changed", *get_key(one), one.change, one.call, one.newly_over


def _is_news(scenario: ScenarioComparison) -> bool:
    return (
        scenario.change not in {"unchanged", "still_failing"}
        or scenario.call in {"regression", "unconfirmed", "undecided"}
        or bool(scenario.newly_over or scenario.differences)
        or bool(scenario.weaker_demands or scenario.lower_scores)
        or scenario.is_downgraded
        or scenario.thinned
        or scenario.flakier
    )


def _dump_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)
