"""Cards of result files, the scenario manifest, skipped scenarios, and other reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import get_args

from ci_agent_eval.analysis.comparison.findings import ComparisonFindingKind
from ci_agent_eval.analysis.failure_causes import (
    CauseRole,
)
from ci_agent_eval.gate.model import Reason, ReasonKind
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.cards.failures import advise_on_module
from ci_agent_eval.render.cards.model import (
    SENTENCE_LIMIT,
    CardBlock,
    CardFacts,
    CauseCard,
    ListBlock,
    NamesBlock,
    OutputBlock,
    ParagraphBlock,
)
from ci_agent_eval.render.findings import FindingRow, FindingRows
from ci_agent_eval.render.manifest_differences import ManifestDifference
from ci_agent_eval.render.numbers import count_noun, format_count
from ci_agent_eval.render.phrases import (
    CHECK_LIMIT,
    Phrase,
    Quoted,
    ScenarioName,
    Strong,
    join_phrases,
    quote_name,
    quote_place,
)
from ci_agent_eval.render.sentences import describe_reason

_IN_A_CARD: frozenset[ReasonKind] = frozenset(
    {
        *("finding", "scenario", "error_budget", "skipped", "incomplete", "tests", "budget"),
        *("missing_scenario", "missing_cases", "regated_scenario", "renamed_scenario", "partial"),
        *("new_scenario", "new_cases"),
        *("suite_budget", "newly_over", "acknowledged", "quarantine"),
    }
)
"""Kinds of reasons whose card is built from other lists."""

_REMARKS = frozenset(get_args(ComparisonFindingKind))


def build_manifest_cards(facts: CardFacts) -> Iterator[CauseCard]:
    """Yield how the run differs from the scenario manifest."""
    for gates in (True, False):
        found = [one for one in facts.manifest if one.gates is gates]
        if not found:
            continue
        lines = [_write_manifest_difference(one) for one in found]
        role: CauseRole = "gates" if gates else "warns"
        advice: list[CardBlock] = (
            [ParagraphBlock((f"{facts.manifest_advice}.",))] if facts.manifest_advice else []
        )
        if len(found) == 1:
            yield CauseCard(role, lines[0], advice)
        else:
            count = count_noun(len(found), "difference")
            summary: Phrase = (Strong(count), " from the known scenarios")
            yield CauseCard(role, summary, [ListBlock(lines), *advice])


def _write_manifest_difference(row: ManifestDifference) -> Phrase:
    name: Phrase = () if row.scenario_id is None else (Quoted(row.scenario_id), ": ")
    detail: Phrase = (" ", Quoted(row.detail, SENTENCE_LIMIT)) if row.detail else ()
    place = quote_place(row.place)
    return join_phrases([(*name, row.text, *detail), (place,) if place else ()], " · ")


def build_skipped_cards(facts: CardFacts) -> Iterator[CauseCard]:
    """Yield the scenarios that were skipped, or of which iterations did not run."""
    gates = {reason.kind for reason in facts.report.verdict.reasons} & {"skipped", "incomplete"}
    found = [
        row
        for row in facts.scenarios
        if row.status in {"skipped", "incomplete"} and not row.is_only_measured
    ]
    lines = [
        join_phrases(
            [
                (*quote_name(row.name), f" {row.unjudged or 'was skipped'}"),
                (Quoted(row.skip_cause.sentence, SENTENCE_LIMIT),),
            ],
            " · ",
        )
        for row in found
    ]
    role: CauseRole = "gates" if gates else "warns"
    keys = frozenset(row.key for row in found)
    if len(found) == 1:
        yield CauseCard(role, lines[0], (), keys)
    elif found:
        head: Phrase = (
            Strong(count_noun(len(found), "scenario")),
            " not judged in every iteration",
        )
        yield CauseCard(role, head, [ListBlock(lines)], keys)


def build_finding_cards(findings: FindingRows) -> Iterator[CauseCard]:
    """Yield cards of collection errors, of the other gating findings, and of the rest."""
    yield from _build_collection_cards([row for row in findings.shown if row.has_traceback])
    for gates in (True, False):
        rows = [row for row in findings.shown if row.gates is gates and not row.has_traceback]
        if not rows:
            continue
        body: list[CardBlock] = []
        if len(rows) > 1:
            body.append(ListBlock([_write_finding(row) for row in rows]))
        elif len(rows[0].sentence) > CHECK_LIMIT:
            body.append(ParagraphBlock((Quoted(rows[0].sentence, SENTENCE_LIMIT),)))
        if gates and findings.consequences:
            body.append(ParagraphBlock((f"{findings.summary}:",)))
            body.append(ListBlock([_write_finding(row) for row in findings.consequences]))
        yield CauseCard("gates" if gates else "warns", _summarize_findings(rows), body)


def _build_collection_cards(rows: Sequence[FindingRow]) -> Iterator[CauseCard]:
    """Yield a card for each error with which pytest could not collect files."""
    groups: dict[str, list[FindingRow]] = {}
    for row in rows:
        groups.setdefault(row.error, []).append(row)
    for error, group in groups.items():
        name: Phrase = (group[0].name, " in ", Quoted(group[0].where), ": ")
        if len(group) > 1:
            name = (Strong(count_noun(len(group), "collection error")), ": ")
        body: list[CardBlock] = [OutputBlock(group[0].sentence)]
        if advice := advise_on_module(error):
            body.append(ParagraphBlock(advice))
        if len(group) > 1:
            body.append(NamesBlock([row.where for row in group]))
        yield CauseCard("gates", (*name, Quoted(error, CHECK_LIMIT)), body)


def _summarize_findings(rows: Sequence[FindingRow]) -> Phrase:
    if len(rows) == 1:
        return _write_finding(rows[0], CHECK_LIMIT)
    kinds = ", ".join(dict.fromkeys(row.name for row in rows))
    count = Strong(f"{format_count(len(rows))} findings")
    return (count, f" about the result files: {kinds}")


def _write_finding(row: FindingRow, limit: int = SENTENCE_LIMIT) -> Phrase:
    where: Phrase = (" in ", Quoted(row.where)) if row.where else ()
    return (row.name, *where, ": ", Quoted(row.sentence, limit))


def build_other_cards(report: Report, *, has_errors: bool) -> Iterator[CauseCard]:
    """Yield the reasons that no list has: of the suite, of missing evidence.

    With `has_errors` other cards say why nothing was judged.
    """
    # Evaluations that do not gate have a fold.
    warnings = [reason for reason in report.verdict.warnings if reason.kind != "evaluation"]
    for role, reasons in (("gates", report.verdict.reasons), ("warns", warnings)):
        others = [reason for reason in reasons if _is_other(reason)]
        if has_errors:
            others = [reason for reason in others if reason.kind != "no_evidence"]
        for kind, group in groupby(others, key=lambda reason: reason.kind):
            lines = [_write_reason(reason) for reason in group]
            if len(lines) == 1:
                yield CauseCard(_as_role(role), lines[0])
            else:
                head: Phrase = (Strong(f"{kind.replace('_', ' ')}: {format_count(len(lines))}"),)
                yield CauseCard(_as_role(role), head, [ListBlock(lines)])


def _as_role(role: str) -> CauseRole:
    return "gates" if role == "gates" else "warns"


def _is_other(reason: Reason) -> bool:
    from_comparison = not isinstance(reason.message, str) or reason.kind in _REMARKS
    return reason.kind not in _IN_A_CARD and not from_comparison


def _write_reason(reason: Reason) -> Phrase:
    sentence = Quoted(describe_reason(reason), SENTENCE_LIMIT)
    if reason.scenario_id is None:
        return (sentence,)
    return (*quote_name(ScenarioName(reason.scenario_id, reason.agent)), ": ", sentence)
