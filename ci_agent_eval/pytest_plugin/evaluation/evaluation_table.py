"""The evaluations as a table in the terminal: conversations, their failures, totals.

The lines contain text of tests and agents unchanged; the caller makes it printable.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.evaluation import (
    EvaluationReport,
    find_evaluation_error,
    name_conversations,
    score_episode,
)
from ci_agent_eval.contract.wording import (
    format_column,
    format_cost,
    one_line,
    pluralize,
    summarize_reason,
)

MAX_NAME = 60
"""Maximum characters of a conversation's name."""

MAX_CELL = 30
"""Maximum characters of a plugin's column."""

MAX_REASON = 300
"""Maximum characters of a reason's first line."""

MAX_FAILURES = 20
"""Maximum failed assertions listed per conversation."""

_TITLES = ("conversation", "passed", "score", "assertions", "duration")
_WORDS = {"passed": "yes", "failed": "no", "error": "error", "skipped": "skipped"}


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One conversation, with the budget violations and costs of its reports."""

    episode: Episode
    violations: Sequence[str] = ()
    cost_usd: float | None = None
    judge_cost_usd: float | None = None


def render_evaluations(
    rows: Sequence[EvaluationRow], report: EvaluationReport, *, is_partial: bool = False
) -> Iterator[str]:
    """Yield the table of the conversations in their order, and the line of totals.

    The line of totals mentions a run that was cut short.
    """
    added = sorted({name for row in rows for name in row.episode.columns})
    titles = (*_TITLES, *(_truncate_text(name, MAX_CELL) for name in added))
    cells = [
        _build_cells(row.episode, name, added)
        for row, name in zip(rows, _list_names(rows), strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    yield _format_line(titles, widths)
    for row, shown in zip(rows, cells, strict=True):
        yield _format_line(shown, widths)
        for detail in _list_details(row):
            yield f"    {detail}"
    partial = "; partial: the run was cut short" if is_partial else ""
    yield _format_totals(rows, report) + partial


def _list_names(rows: Sequence[EvaluationRow]) -> Iterator[str]:
    """Yield the name of each conversation, shortened before its number, if any."""
    for row, name in zip(rows, name_conversations([row.episode for row in rows]), strict=True):
        scenario = row.episode.scenario_id
        yield _truncate_text(scenario, MAX_NAME) + name.removeprefix(scenario)


def _build_cells(episode: Episode, name: str, added: Sequence[str]) -> tuple[str, ...]:
    """Return a cell for each title; `added` are the columns of plugins."""
    own = (format_column(episode.columns[n]) if n in episode.columns else "-" for n in added)
    passed = sum(1 for assertion in episode.assertions if assertion.passed)
    scored = episode.outcome in {"passed", "failed"}
    return (
        name,
        _WORDS[episode.outcome],
        _format_score(score_episode(episode)) if scored else "-",
        f"{passed}/{len(episode.assertions)}",
        "-" if episode.duration_ms is None else f"{episode.duration_ms:,.0f} ms",
        *(_truncate_text(one_line(cell), MAX_CELL) for cell in own),
    )


def _format_line(cells: Sequence[str], widths: Sequence[int]) -> str:
    (name, passed, *figures), (first, second, *rest) = cells, widths
    shown = (f"{figure:>{width}}" for figure, width in zip(figures, rest, strict=True))
    return "  ".join((f"{name:<{first}}", f"{passed:<{second}}", *shown)).rstrip()


def _list_details(row: EvaluationRow) -> Iterator[str]:
    failed = [assertion for assertion in row.episode.assertions if not assertion.passed]
    yield from map(_format_failure, failed[:MAX_FAILURES])
    if (more := len(failed) - MAX_FAILURES) > 0:
        yield f"and {pluralize(more, 'more failed assertion')}, listed in the report"
    if error := find_evaluation_error(row.episode):
        yield f"{row.episode.outcome}: {_get_first_line(error)}"
    elif row.episode.outcome == "skipped":
        yield f"skipped: {_get_first_line(row.episode.reason or 'no reason given')}"
    for violation in row.violations:
        yield f"over {violation}"


def _format_failure(assertion: Assertion) -> str:
    place = f"{assertion.file}:{assertion.line}: " if assertion.file else ""
    warning = "warning: " if assertion.severity == "warning" else ""
    reason = f": {_get_first_line(summarize_reason(assertion.reason))}" if assertion.reason else ""
    return f"{place}{warning}{_get_first_line(assertion.name)}{reason}"


def _format_totals(rows: Sequence[EvaluationRow], report: EvaluationReport) -> str:
    outcomes = Counter(row.episode.outcome for row in rows)
    total, passed = report.total_conversations, report.passed_conversations
    share = _format_percentage(report.pass_rate)
    parts = [f"{pluralize(total, 'conversation')}: {passed} passed ({share} %)"]
    if outcomes["passed"] + outcomes["failed"]:
        parts[0] += f", average score {_format_score(report.average_score)}"
    if outcomes["error"]:
        parts.append(f"{outcomes['error']} ended in an error, not in the average")
    if outcomes["skipped"]:
        parts.append(f"{outcomes['skipped']} skipped, not counted")
    return "; ".join([*parts, *_format_costs(rows)])


def _format_costs(rows: Sequence[EvaluationRow]) -> Iterator[str]:
    judge = [row.judge_cost_usd for row in rows if row.judge_cost_usd is not None]
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    if costs or judge:
        share = f" (judge: {format_cost(math.fsum(judge))})" if judge else ""
        yield f"{format_cost(math.fsum([*costs, *judge]))}{share}"


def _format_score(score: float) -> str:
    """Format a score; only exactly 1 is shown as 1, and only 0 as 0."""
    return f"{score if score in (0, 1) else min(max(score, 0.01), 0.99):.2f}"


def _format_percentage(percentage: float) -> str:
    shown = percentage if percentage in (0, 100) else min(max(percentage, 0.1), 99.9)
    return f"{shown:.1f}"


def _get_first_line(text: str) -> str:
    return _truncate_text(text.strip().partition("\n")[0], MAX_REASON)


def _truncate_text(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
