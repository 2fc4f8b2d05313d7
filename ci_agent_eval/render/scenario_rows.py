"""Scenarios as rows of the report view: names, causes, figures, and where they are defined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ci_agent_eval.analysis.comparison.model import ScenarioChange, ScenarioComparison
from ci_agent_eval.analysis.summary import FailedAssertion, ScenarioSummary
from ci_agent_eval.gate.model import Judgement, ScenarioStatus
from ci_agent_eval.gate.report import JudgedScenario, Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.budget_overruns import BudgetOverrun, build_overrun
from ci_agent_eval.render.comparison_wording import describe_note
from ci_agent_eval.render.links import Links, Place
from ci_agent_eval.render.numbers import format_count
from ci_agent_eval.render.phrases import ScenarioKey, ScenarioName, get_key
from ci_agent_eval.render.sentences import describe_rated, describe_stop

NO_REASON = "no reason given"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a scenario fails, as its test says it; name and reason are foreign text."""

    name: str | None
    reason: str | None
    place: Place
    iterations: int | None = None
    """The number of iterations it failed in, where that is known."""

    @property
    def sentence(self) -> str:
        """The reason, or that a check of this name failed."""
        if self.reason:
            return self.reason
        return f"the check failed: {self.name}" if self.name else NO_REASON


@dataclass(frozen=True, slots=True)
class ScenarioRow:
    """A scenario with its judgement, written out; raw counts are in `scenario`."""

    scenario: ScenarioSummary
    judgement: Judgement
    name: ScenarioName
    remarks: Sequence[str]
    """Our own words beside its name: `advisory`, `in quarantine`, `needs no evidence`."""
    place: Place
    causes: Sequence[Cause]
    """Every failed assertion, then every reason of iterations that failed without one."""
    first_cause: Cause
    error_cause: Cause
    """The first reason of an iteration that was not judged."""
    skip_cause: Cause
    """The last reason of an iteration that was skipped."""
    warnings: Sequence[Cause]
    """Failed assertions that only warn."""
    passes: str
    """Passed of judged iterations: `4 / 5`."""
    unjudged: str
    """How many iterations were not judged; empty where none of them ran."""
    pass_rate: str
    """With its interval; empty with fewer than two iterations judged."""
    score: str
    """Mean score of evaluations; empty: none."""
    cost_per_episode: float | None
    overruns: Sequence[BudgetOverrun]
    change: ScenarioChange | None = None
    """None: it is not compared."""
    note: str = ""
    """Change, call and p-value of its comparison, in our own words."""
    baseline_findings: Sequence[BaselineFinding] = ()

    @property
    def key(self) -> ScenarioKey:
        """Scenario id and agent."""
        return get_key(self.scenario)

    @property
    def status(self) -> ScenarioStatus:
        """How the gate judged it."""
        return self.judgement.status

    @property
    def is_required(self) -> bool:
        """Whether it gates."""
        return self.judgement.gate == "required"

    @property
    def is_passing(self) -> bool:
        """Whether it reached its required pass rate."""
        return self.judgement.status == "passing"

    @property
    def quarantined_until(self) -> str:
        """The last day in quarantine, and whether it is over; empty: it is in none."""
        entry = self.scenario.quarantine
        if entry is None:
            return ""
        return f"{entry.until}, over: it gates again" if entry.expired else str(entry.until)

    @property
    def is_evaluation(self) -> bool:
        """Whether all of its iterations are evaluations."""
        return self.scenario.mode == "evaluation"

    @property
    def is_only_measured(self) -> bool:
        """Whether it is an evaluation that does not gate."""
        return self.is_evaluation and not self.is_required

    @property
    def is_advisory(self) -> bool:
        """Whether its tests make it advisory; neither evaluations nor quarantine count."""
        return not (self.is_required or self.is_evaluation or self.scenario.in_quarantine)

    @property
    def hard_overruns(self) -> Sequence[str]:
        """Labels of the hard budgets it is over; the user's own are foreign text."""
        return [overrun.label for overrun in self.overruns if overrun.hard]

    @property
    def fails_by_budget(self) -> bool:
        """Whether it is over a budget that gates."""
        return any(overrun.gates for overrun in self.overruns)

    @property
    def fails_by_baseline(self) -> bool:
        """Whether a finding of the comparison gates."""
        return any(finding.gates for finding in self.baseline_findings)


def build_scenario_rows(
    report: Report,
    links: Links,
    compared: Mapping[ScenarioKey, ScenarioComparison],
    findings: Sequence[BaselineFinding],
) -> tuple[ScenarioRow, ...]:
    """Return a row for each scenario, by scenario id and agent."""
    found: dict[ScenarioKey | None, list[BaselineFinding]] = {}
    for finding in findings:
        found.setdefault(finding.key, []).append(finding)
    return tuple(
        _build_row(item, links, compared.get(key), tuple(found.get(key, ())))
        for item in report.judged_scenarios()
        for key in (get_key(item.scenario),)
    )


def _build_row(
    item: JudgedScenario,
    links: Links,
    compared: ScenarioComparison | None,
    findings: Sequence[BaselineFinding],
) -> ScenarioRow:
    scenario = item.scenario
    place = links.place(scenario.file, scenario.line)
    causes = tuple(_list_causes(scenario, place, links))
    unjudged, tally = scenario.unjudged_reasons or (NO_REASON,), scenario.tally
    skip = unjudged[-1] if tally.skipped else "removed from the run before it began"
    is_required = scenario.gate == "required"
    cost, ran = scenario.cost_usd, max(tally.ran, 1)
    rate, score = scenario.rated.pass_rate, scenario.evaluations.mean_score
    pass_rate = ""
    if rate is not None and scenario.rated.judged > 1:
        pass_rate = numbers.format_percent_within(rate, scenario.pass_interval)
        pass_rate += describe_rated(scenario.adaptive)
    return ScenarioRow(
        scenario=scenario,
        judgement=item.judgement,
        name=ScenarioName.of(scenario),
        remarks=tuple(_list_remarks(scenario)),
        place=place,
        causes=causes,
        first_cause=next(iter(causes), Cause(None, NO_REASON, place)),
        error_cause=Cause(None, unjudged[0], place),
        skip_cause=Cause(None, skip, place),
        warnings=tuple(_build_cause(failed, place, links) for failed in scenario.warnings),
        passes=numbers.format_part(tally.passed, tally.judged),
        unjudged=_count_unjudged(scenario),
        pass_rate=pass_rate,
        score="" if score is None else numbers.format_score(score),
        cost_per_episode=None if cost is None else cost / ran,
        overruns=tuple(
            build_overrun(found.violation, is_required=is_required) for found in scenario.violations
        ),
        change=None if compared is None else compared.change,
        note="" if compared is None else describe_note(compared),
        baseline_findings=findings,
    )


def _list_causes(scenario: ScenarioSummary, place: Place, links: Links) -> Iterator[Cause]:
    for failed in scenario.failures:
        yield _build_cause(failed, place, links)
    for reason in scenario.reasons:
        yield Cause(None, reason, place)


def _build_cause(failed: FailedAssertion, place: Place, links: Links) -> Cause:
    """Return a failed assertion at its own line, or at its test's where it has none."""
    found = failed.assertion
    stands = links.place(found.file, found.line) if found.file else place
    return Cause(found.name, found.reason, stands, failed.iterations)


def _list_remarks(scenario: ScenarioSummary) -> Iterator[str]:
    if not scenario.needs_evidence:
        yield "needs no evidence"
    if scenario.in_quarantine:
        yield "in quarantine"
    elif scenario.gate == "advisory":
        yield "advisory"
    if stop := describe_stop(scenario):
        yield stop


def _count_unjudged(scenario: ScenarioSummary) -> str:
    left_out, ran = scenario.unjudged_iterations, scenario.tally.ran
    return (
        f"{format_count(left_out)} of {format_count(ran + left_out)} iterations not judged"
        if ran
        else ""
    )
