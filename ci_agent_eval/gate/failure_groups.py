"""The failures of a report by cause, and what each does to the verdict. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ci_agent_eval.analysis.comparison.model import Comparison, ScenarioComparison, SuiteChange
from ci_agent_eval.analysis.failure_causes import (
    AffectedScenario,
    CauseGroup,
    CauseRole,
    FailureHistory,
    find_failure_cause,
    group_by_cause,
    is_crash,
    list_error_causes,
)
from ci_agent_eval.analysis.summary import ScenarioSummary
from ci_agent_eval.gate.model import Reason, ReasonKind
from ci_agent_eval.gate.report import JudgedScenario, Report

ScenarioKey = tuple[str, str | None]

_DROPS: frozenset[ReasonKind] = frozenset({"regression", "undecided", "unconfirmed"})

_FELL = frozenset({"regression", "unconfirmed", "undecided"})

BROKEN_SHARE = 0.2
"""Share of the scenarios that fail or end in errors, above which cost and latency say little: a
broken agent is cheap."""


def group_failures(report: Report) -> tuple[CauseGroup, ...]:
    """Group the scenarios with failed iterations that gate, warn, or pull the suite down."""
    roles = _FailureRoles(report)
    found = []
    for item in report.judged_scenarios():
        role = roles.find_role(item)
        cause = None if role is None else find_failure_cause(item.scenario)
        if role is not None and cause is not None:
            history = roles.find_history(item)
            found.append(AffectedScenario(item.scenario, cause, role, history))
    return group_by_cause(found)


def group_errors(report: Report) -> tuple[CauseGroup, ...]:
    """Group the scenarios with iterations that ended in an infrastructure error."""
    is_over = any(reason.kind == "error_budget" for reason in report.verdict.reasons)

    def find_role(item: JudgedScenario) -> CauseRole:
        gates = is_over or item.judgement.status == "errored"
        return "gates" if gates and item.judgement.gate == "required" else "warns"

    return group_by_cause(
        AffectedScenario(item.scenario, cause, find_role(item))
        for item in report.judged_scenarios()
        if not item.only_measures
        for cause in list_error_causes(item.scenario)
    )


class _FailureRoles:
    """Determines the effect of a scenario's failed iterations on the verdict."""

    def __init__(self, report: Report) -> None:
        self._gating = _collect_keys(report.verdict.reasons)
        self._warning = _collect_keys(report.verdict.warnings)
        self._is_suite_low = any(_is_about_suite_rate(one) for one in report.verdict.reasons)
        self._compared = index_comparison(report)

    def find_role(self, item: JudgedScenario) -> CauseRole | None:
        """Return the role; None: the scenario is no cause of anything."""
        scenario, key = item.scenario, (item.scenario.scenario_id, item.scenario.agent)
        if item.judgement.fails_alone or key in self._gating:
            return "gates" if scenario.tally.failed else None
        if not scenario.tally.failed or item.judgement.gate != "required":
            return None
        if self._is_suite_low and (item.judgement.status == "failing" or self._passes_less(key)):
            return "contributes"
        return "warns" if key in self._warning else None

    def find_history(self, item: JudgedScenario) -> FailureHistory:
        """Return whether the scenario failed in the baseline."""
        found = self._compared.get((item.scenario.scenario_id, item.scenario.agent))
        if found is None or found.before is None or found.change == "not_comparable":
            return "unknown"
        return "still" if found.change == "still_failing" and found.call not in _FELL else "new"

    def _passes_less(self, key: ScenarioKey) -> bool:
        found = self._compared.get(key)
        return found is not None and passes_less_often(found)


def _collect_keys(reasons: Collection[Reason]) -> set[ScenarioKey]:
    return {(r.scenario_id, r.agent) for r in reasons if r.scenario_id and r.kind in _DROPS}


def _is_about_suite_rate(reason: Reason) -> bool:
    is_drop = isinstance(reason.message, SuiteChange) and reason.message.measure == "pass_rate"
    return is_drop or reason.kind == "suite_pass_rate"


def index_comparison(report: Report) -> dict[ScenarioKey, ScenarioComparison]:
    """Return the compared scenarios by id and agent; empty without a baseline."""
    found = report.comparison
    if not isinstance(found, Comparison):
        return {}
    return {(one.scenario_id, one.agent): one for one in found.scenarios}


def passes_less_often(scenario: ScenarioComparison) -> bool:
    """Say whether the observed pass rate is lower than in the baseline."""
    sides = (scenario.before, scenario.after)
    before, after = (None if one is None else one.pass_rate for one in sides)
    return before is not None and after is not None and after < before


def list_unjudged(report: Report) -> tuple[ScenarioSummary, ...]:
    """Return the scenarios that ran and of which no iteration was judged."""
    return tuple(
        item.scenario
        for item in report.judged_scenarios()
        if item.judgement.status == "errored" and not item.only_measures
    )


def list_crashed(report: Report) -> tuple[ScenarioComparison, ...]:
    """Return the scenarios that passed in the baseline and now only crash."""
    compared = index_comparison(report)
    unjudged = [(one, compared.get((one.scenario_id, one.agent))) for one in list_unjudged(report)]
    return tuple(
        found
        for scenario, found in unjudged
        if found is not None
        and found.before is not None
        and found.before.passing
        and all(map(is_crash, list_error_causes(scenario)))
    )


def is_broken(report: Report) -> bool:
    """Say whether a fifth of the scenarios fails: cost and latency then say little."""
    scenarios = tuple(report.judged_scenarios())
    return len(tuple(_list_broken(report))) > BROKEN_SHARE * len(scenarios)


def _list_broken(report: Report) -> Iterator[ScenarioSummary]:
    compared = index_comparison(report)
    for item in report.judged_scenarios():
        key = (item.scenario.scenario_id, item.scenario.agent)
        change = compared[key].change if key in compared else None
        if item.judgement.status == "errored" or (
            item.judgement.status == "failing" and change != "still_failing"
        ):
            yield item.scenario
