"""The view model of the report: everything that the formats show, selected, named and written out.

It is built once from the gate's report, and every format renders it: text in it is not yet
escaped, and every place has its address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ci_agent_eval.analysis.comparison.model import Comparison, NoBaseline
from ci_agent_eval.analysis.failure_causes import CAUSE_ROLES
from ci_agent_eval.analysis.loaded_results import PlainTests
from ci_agent_eval.analysis.summary import Totals
from ci_agent_eval.contract.findings import SourceFile
from ci_agent_eval.gate.failure_groups import index_comparison
from ci_agent_eval.gate.model import Reason, ReasonKind, VerdictConclusion
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.baseline_findings import BaselineFinding, build_baseline_findings
from ci_agent_eval.render.behaviour_diff import list_changed_answer
from ci_agent_eval.render.budget_overruns import BudgetOverrun, build_overrun
from ci_agent_eval.render.cards.baseline import build_baseline_cards
from ci_agent_eval.render.cards.budgets import build_budget_cards
from ci_agent_eval.render.cards.failures import (
    build_error_cards,
    build_failure_cards,
    build_test_cards,
)
from ci_agent_eval.render.cards.instructions import fold_by_instructions
from ci_agent_eval.render.cards.model import CardFacts, CauseCard, list_commands
from ci_agent_eval.render.cards.others import (
    build_finding_cards,
    build_manifest_cards,
    build_other_cards,
    build_skipped_cards,
)
from ci_agent_eval.render.change_lists import ChangeList, build_change_lists
from ci_agent_eval.render.comparison_wording import describe_baseline, get_comparison
from ci_agent_eval.render.findings import FindingRows, build_finding_rows
from ci_agent_eval.render.headline import render_headline
from ci_agent_eval.render.links import NO_PLACE, Links, Place
from ci_agent_eval.render.manifest_differences import (
    ManifestDifference,
    build_manifest_differences,
    describe_update,
)
from ci_agent_eval.render.numbers import count_noun, format_count
from ci_agent_eval.render.phrases import ScenarioKey, ScenarioName
from ci_agent_eval.render.scenario_rows import Cause, ScenarioRow, build_scenario_rows
from ci_agent_eval.render.sentences import describe_reason
from ci_agent_eval.render.suite_figures import (
    SuiteFigure,
    compare_figures,
    list_ending,
    list_figures,
    title_evaluations,
)


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """A reason or a warning of the verdict with its sentence, which may hold foreign text."""

    kind: ReasonKind
    name: ScenarioName | None
    """None: it is about no scenario."""
    sentence: str

    @property
    def key(self) -> ScenarioKey | None:
        """Scenario id and agent; None: it is about no scenario."""
        return None if self.name is None else (self.name.scenario_id, self.name.agent)

    @property
    def line(self) -> str:
        """The scenario and the sentence on one line."""
        if self.name is None:
            return self.sentence
        agent = f" ({self.name.agent})" if self.name.agent else ""
        return f"{self.name.scenario_id}{agent}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class ReportView:
    """The report, ready to be rendered."""

    suite: str
    """Foreign text, as are titles, names, reasons and files everywhere in the view."""
    conclusion: VerdictConclusion
    headline: str
    links: Links
    commit: str | None
    figures: Sequence[SuiteFigure]
    compared_figures: Sequence[SuiteFigure]
    """Beside those of the baseline."""
    totals: Totals
    base: tuple[str, str] | None
    """Our words about the baseline, then its label or why there is none."""
    no_baseline: str | None
    """Why nothing was compared; None: there is a baseline, or none was asked for."""
    comparison: Comparison | None
    baseline_findings: Sequence[BaselineFinding]
    scenarios: Sequence[ScenarioRow]
    """By scenario id and agent."""
    overruns: Sequence[tuple[ScenarioRow | None, BudgetOverrun]]
    """The gating ones first, the suite's (None) before the scenarios'."""
    tests: PlainTests
    flaky: Sequence[tuple[str, int, Place]]
    """Titles of scenarios and tests that passed only on a retry; iterations (0: a test), place."""
    quarantined: Sequence[ScenarioRow]
    quarantine_title: str
    acknowledged: Sequence[ReasonRow]
    """Accepted regressions, then the entries that accept nothing."""
    acknowledged_title: str
    manifest_differences: Sequence[ManifestDifference]
    manifest_advice: str
    """How to update the manifest; empty: there is none."""
    evaluations_title: str
    misses_thresholds: bool
    """Whether the evaluations together miss a threshold of the suite."""
    misses_suite_rate: bool
    """Whether the strict required scenarios together miss the suite's required pass rate."""
    changed_answers: Mapping[ScenarioKey, Sequence[str]]
    """The first changed line of an answer, before and now; foreign text."""
    findings: FindingRows
    sources: Sequence[SourceFile]
    reasons: Sequence[ReasonRow]
    warnings: Sequence[ReasonRow]
    cards: Sequence[CauseCard]
    """A card for each cause, the gating ones first."""
    changes: Sequence[ChangeList]
    """What the change did to the agent."""
    commands: Sequence[str]
    """Commands for a reviewer of a regression."""
    ending: Sequence[str]
    """Episodes, tests and cost, in short."""

    @property
    def has_passed(self) -> bool:
        """Whether the gate passed."""
        return self.conclusion == "success"

    @property
    def failing_advisory_scenarios(self) -> Sequence[ScenarioRow]:
        """Advisory scenarios below their pass rate."""
        return [row for row in self.scenarios if row.is_advisory and row.status == "failing"]

    @property
    def repeated_scenarios(self) -> Sequence[ScenarioRow]:
        """Scenarios that ran more than once and were judged."""
        tallies = ((row, row.scenario.tally) for row in self.scenarios)
        return [row for row, tally in tallies if tally.ran > 1 and tally.judged]

    @property
    def evaluations(self) -> Sequence[ScenarioRow]:
        """Scenarios that are evaluations, whether they gate or not."""
        return [row for row in self.scenarios if row.is_evaluation]

    @property
    def failures(self) -> Iterator[tuple[ScenarioRow, Cause]]:
        """Each cause of the scenarios with failed iterations."""
        for row in self.scenarios:
            if row.scenario.tally.failed:
                yield from ((row, cause) for cause in row.causes)


def build_report_view(report: Report, links: Links | None = None) -> ReportView:
    """Build the view of a report; without `links` no place has an address."""
    links = links or Links()
    summary, verdict = report.summary, report.verdict
    comparison, figures = get_comparison(report), tuple(list_figures(report))
    findings = build_baseline_findings(report, links)
    scenarios = build_scenario_rows(report, links, index_comparison(report), findings)
    reasons, warnings = (
        tuple(map(_build_reason, found)) for found in (verdict.reasons, verdict.warnings)
    )
    quarantined = tuple(row for row in scenarios if row.scenario.quarantine is not None)
    # An entry that accepts nothing names no scenario.
    accepted = (row for row in warnings if row.kind == "acknowledged")
    acknowledged = tuple(sorted(accepted, key=lambda row: row.name is None))
    manifest_differences, advice = (
        build_manifest_differences(report, links),
        describe_update(report),
    )
    overruns, finding_rows = _list_overruns(report, scenarios), build_finding_rows(report)
    facts = CardFacts(
        report,
        links,
        scenarios,
        findings,
        overruns,
        finding_rows,
        manifest_differences,
        advice,
    )
    return ReportView(
        suite=summary.suite,
        conclusion=verdict.conclusion,
        headline=render_headline(report),
        links=links,
        commit=report.commit,
        figures=figures,
        compared_figures=compare_figures(figures, comparison, report) if comparison else figures,
        totals=summary.totals,
        base=describe_baseline(report),
        no_baseline=report.comparison.reason if isinstance(report.comparison, NoBaseline) else None,
        comparison=comparison,
        baseline_findings=findings,
        scenarios=scenarios,
        overruns=overruns,
        tests=summary.tests,
        flaky=(
            *(
                (row.name.title, row.scenario.flaky, row.place)
                for row in scenarios
                if row.scenario.flaky
            ),
            *((title, 0, NO_PLACE) for title in summary.tests.flaky),
        ),
        quarantined=quarantined,
        quarantine_title=_title_quarantine(quarantined),
        acknowledged=acknowledged,
        acknowledged_title=_title_acknowledged(acknowledged),
        manifest_differences=manifest_differences,
        manifest_advice=advice,
        evaluations_title=title_evaluations(report),
        misses_thresholds=report.misses_thresholds,
        misses_suite_rate=any(reason.kind == "suite_pass_rate" for reason in verdict.reasons),
        changed_answers={
            (pair.scenario_id, pair.agent): list_changed_answer(pair) for pair in report.pairs
        },
        findings=finding_rows,
        sources=summary.sources,
        reasons=reasons,
        warnings=warnings,
        cards=build_cause_cards(facts),
        changes=build_change_lists(report, "" if comparison is None else comparison.label),
        commands=tuple(list_commands(report)),
        ending=tuple(list_ending(report)),
    )


def _build_reason(reason: Reason) -> ReasonRow:
    about = reason.scenario_id
    name = None if about is None else ScenarioName(about, reason.agent)
    return ReasonRow(reason.kind, name, describe_reason(reason))


def _list_overruns(
    report: Report, scenarios: Sequence[ScenarioRow]
) -> Sequence[tuple[ScenarioRow | None, BudgetOverrun]]:
    suite = (build_overrun(v, is_required=True) for v in report.summary.suite_violations)
    found: list[tuple[ScenarioRow | None, BudgetOverrun]] = [(None, overrun) for overrun in suite]
    found += [(row, overrun) for row in scenarios for overrun in row.overruns]
    return tuple(sorted(found, key=lambda pair: not pair[1].gates))


def _title_quarantine(found: Sequence[ScenarioRow]) -> str:
    """Count the scenarios in quarantine, the failing ones and the expired ones."""
    active, parts = [row for row in found if row.scenario.in_quarantine], []
    if active:
        failing = sum(1 for row in active if not row.is_passing)
        note = f" ({format_count(failing)} not passing)" if failing else ""
        parts.append(f"In quarantine, not gating: {count_noun(len(active), 'scenario')}{note}")
    if over := len(found) - len(active):
        title = "quarantine" if active else "Quarantine"
        parts.append(f"{title} over, gating again: {format_count(over)}")
    return "; ".join(parts)


def _title_acknowledged(found: Sequence[ReasonRow]) -> str:
    """Count the accepted regressions, and the entries that accept nothing."""
    held = sum(1 for reason in found if reason.name is not None)
    needless = len(found) - held
    accepts = "accepts" if needless == 1 else "accept"
    entries = count_noun(needless, "entry", "entries")
    parts = [f"Acknowledged, not gating: {format_count(held)}"] if held else []
    parts += [f"{entries} of the acknowledged {accepts} nothing"] if needless else []
    return "; ".join(parts)


def build_cause_cards(facts: CardFacts) -> tuple[CauseCard, ...]:
    """Return the cards: changed instructions, what gates, then parts of a drop, then warnings."""
    errors, failures = list(build_error_cards(facts)), list(build_failure_cards(facts))
    changed, others = fold_by_instructions(facts, errors, failures)
    cards = [
        *build_finding_cards(facts.findings),
        *others,
        *build_test_cards(facts),
        *build_budget_cards(facts),
        *build_baseline_cards(facts),
        *build_manifest_cards(facts),
        *build_skipped_cards(facts),
        *build_other_cards(facts.report, has_errors=bool(errors)),
    ]
    return *changed, *sorted(cards, key=lambda card: CAUSE_ROLES.index(card.role))
