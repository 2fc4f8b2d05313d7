"""Why the gate failed, as the page lists it: a line for each scenario, with all against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.gate import Reason, ReasonKind
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.sentences import finding_sentence, reason_sentence
from ci_agent_eval.render.views import Findings, finding_name, findings_of

_WORDS: dict[ReasonKind, str] = {"regression": "regression", "budget": "over budget"}
"""Kinds whose sentence does not say what the headline counts them as."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is against one scenario, one finding, or one reason that is about neither."""

    about: str | None
    agent: str | None
    parts: Sequence[str]
    """Each may hold foreign text."""


def told_reasons(report: Report) -> Sequence[Told]:
    """Return every reason of the verdict, the findings first, those of one scenario together."""
    reasons = [reason for reason in report.verdict.reasons if reason.kind != "finding"]
    about: dict[tuple[str, str | None], list[str]] = {}
    for reason in reasons:
        if reason.scenario_id is not None:
            about.setdefault((reason.scenario_id, reason.agent), []).append(_sentence(reason))
    return [
        *_of_findings(findings_of(report)),
        *(Told(name, agent, parts) for (name, agent), parts in about.items()),
        *(Told(None, None, [_sentence(r)]) for r in reasons if r.scenario_id is None),
    ]


def _of_findings(found: Findings) -> Iterator[Told]:
    for finding in found.told:
        if finding.blocking:
            yield Told(None, None, [_finding(finding)])
    if found.consequences:
        yield Told(None, None, [found.summary])


def _finding(finding: Finding) -> str:
    where = f" in {finding.where}" if finding.where else ""
    return f"{finding_name(finding)}{where}: {finding_sentence(finding)}"


def _sentence(reason: Reason) -> str:
    word = _WORDS.get(reason.kind)
    said = reason_sentence(reason)
    return f"{word}: {said}" if word else said
