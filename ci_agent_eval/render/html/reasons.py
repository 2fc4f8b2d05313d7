"""The reasons of a failed gate as the page lists them: one line for each scenario."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.gate import ReasonKind
from ci_agent_eval.render.findings import FindingRows
from ci_agent_eval.render.report_view import ReasonRow, ReportView
from ci_agent_eval.render.scenario_name import ScenarioName

_WORDS: dict[ReasonKind, str] = {"regression": "regression", "budget": "over budget"}
"""Kinds whose sentence lacks the word of the headline."""


@dataclass(frozen=True, slots=True)
class ReasonGroup:
    """All reasons about one scenario, or one finding, or one reason about neither."""

    name: ScenarioName | None
    parts: Sequence[str]
    """Each may hold foreign text."""


def group_reasons(view: ReportView) -> Sequence[ReasonGroup]:
    """Return every reason of the verdict, the findings first, those of one scenario together."""
    reasons = [reason for reason in view.reasons if reason.kind != "finding"]
    by_name: dict[ScenarioName, list[str]] = {}
    for reason in reasons:
        if reason.name is not None:
            by_name.setdefault(reason.name, []).append(_format_reason(reason))
    return [
        *_list_findings(view.findings),
        *(ReasonGroup(name, parts) for name, parts in by_name.items()),
        *(ReasonGroup(None, [_format_reason(reason)]) for reason in reasons if reason.name is None),
    ]


def _list_findings(found: FindingRows) -> Iterator[ReasonGroup]:
    for row in found.shown:
        if row.gates:
            where = f" in {row.where}" if row.where else ""
            yield ReasonGroup(None, [f"{row.name}{where}: {row.sentence}"])
    if found.consequences:
        yield ReasonGroup(None, [found.summary])


def _format_reason(reason: ReasonRow) -> str:
    word = _WORDS.get(reason.kind)
    return f"{word}: {reason.sentence}" if word else reason.sentence
