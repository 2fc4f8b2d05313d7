"""The reasons and warnings of the gate that come from the baseline comparison."""

from __future__ import annotations

from collections.abc import Iterator

from ci_agent_eval.analysis.comparison.findings import (
    ComparisonFinding,
    ComparisonFindingKind,
    list_comparison_findings,
)
from ci_agent_eval.analysis.comparison.model import Comparison, NoBaseline, SuiteChange
from ci_agent_eval.analysis.waivers import WaiverStatus
from ci_agent_eval.gate.model import (
    GatePolicy,
    Judgement,
    Reason,
    ReasonData,
    ReasonKind,
    ScenarioStatus,
)
from ci_agent_eval.gate.waivers import ACKNOWLEDGEABLE, find_acknowledgement, find_needless_waivers


def weigh_findings(
    comparison: Comparison | NoBaseline,
    judgements: tuple[Judgement, ...],
    policy: GatePolicy,
    acknowledged: tuple[WaiverStatus, ...],
) -> Iterator[tuple[Reason, bool]]:
    """Yield a reason for each comparison finding, and whether it fails the gate."""
    redundant = {
        (j.scenario_id, j.agent): _find_redundant_kind(j.status, policy) for j in judgements
    }
    found = tuple(list_comparison_findings(comparison, policy.increases))
    for finding in found:
        scenario = finding.scenario
        name = (None, None) if scenario is None else (scenario.scenario_id, scenario.agent)
        if scenario is None or finding.kind != redundant.get(
            (scenario.scenario_id, scenario.agent)
        ):
            yield _weigh_finding(finding, name, policy, acknowledged)
    if isinstance(comparison, Comparison):
        acceptable = [r.scenario for r in found if r.scenario and r.kind in ACKNOWLEDGEABLE]
        for message in find_needless_waivers(acceptable, acknowledged):
            yield Reason("acknowledged", message), False


def _find_redundant_kind(
    status: ScenarioStatus, policy: GatePolicy
) -> ComparisonFindingKind | None:
    """Return the kind of comparison finding that repeats a scenario's status; None: no kind."""
    if status == "failing":
        return "undecided"
    is_reported = status == "errored" or (status == "skipped" and not policy.allow_skipped)
    return "not_judged" if is_reported else None


def _weigh_finding(
    finding: ComparisonFinding,
    name: tuple[str | None, str | None],
    policy: GatePolicy,
    acknowledged: tuple[WaiverStatus, ...],
) -> tuple[Reason, bool]:
    """Return a finding as a reason, with its acknowledgement, and whether it gates."""
    gates, waived = _is_gating(finding, policy), find_acknowledgement(finding, acknowledged)
    if waived is None:
        return _build_reason(finding.kind, finding.message, name, finding.advice), gates
    if waived.is_in_force:
        return _build_reason("acknowledged", finding.message, name, waived.note), False
    return _build_reason(finding.kind, finding.message, name, waived.note), gates


def _build_reason(
    kind: ReasonKind, message: str | ReasonData, name: tuple[str | None, str | None], note: str
) -> Reason:
    if note and isinstance(message, str):
        return Reason(kind, f"{message}; {note}", *name)
    return Reason(kind, message, *name, note)


def _is_gating(finding: ComparisonFinding, policy: GatePolicy) -> bool:
    """Return whether a comparison finding fails the gate; in an advisory scenario it only warns.

    A downgraded scenario was required in the baseline, so its finding always gates.
    """
    if finding.kind == "downgraded":
        return True
    is_required = finding.scenario is None or finding.scenario.required
    if isinstance(finding.message, SuiteChange):
        is_drop = finding.kind == "suite_drop"
        return is_drop and finding.message.gates and policy.regressions == "fail"
    if finding.kind == "regression":
        return is_required and policy.regressions == "fail"
    return is_required and finding.kind in {"vanished", "vanished_cases", "increase"}
