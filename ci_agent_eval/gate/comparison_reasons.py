"""What comparing found, each with whether it fails the gate."""

from __future__ import annotations

from collections.abc import Iterator

from ci_agent_eval.analysis.comparison.findings import (
    AllowedIncreases,
    ComparisonFinding,
    ComparisonFindingKind,
    list_comparison_findings,
)
from ci_agent_eval.analysis.comparison.model import Comparison, NoBaseline
from ci_agent_eval.analysis.waivers import WaiverStatus
from ci_agent_eval.gate.model import (
    GatePolicy,
    Judgement,
    Reason,
    Status,
)
from ci_agent_eval.gate.waivers import (
    ACKNOWLEDGEABLE,
    find_acknowledgement,
    find_needless_acknowledgements,
)


def weigh_findings(
    comparison: Comparison | NoBaseline | None,
    judgements: tuple[Judgement, ...],
    policy: GatePolicy,
    acknowledged: tuple[WaiverStatus, ...],
) -> Iterator[tuple[Reason, bool]]:
    """Yield what comparing found, each with whether it gates."""
    if comparison is None:
        return
    told = {(j.scenario_id, j.agent): _find_redundant_kind(j.status, policy) for j in judgements}
    increases = AllowedIncreases(policy.max_cost_increase, policy.max_latency_increase)
    found = tuple(list_comparison_findings(comparison, increases))
    for remark in found:
        scenario = remark.scenario
        name = (None, None) if scenario is None else (scenario.scenario_id, scenario.agent)
        if scenario is None or remark.kind != told.get((scenario.scenario_id, scenario.agent)):
            yield _weigh_finding(remark, name, policy, acknowledged)
    if isinstance(comparison, Comparison):
        acceptable = [r.scenario for r in found if r.scenario and r.kind in ACKNOWLEDGEABLE]
        for message in find_needless_acknowledgements(acceptable, acknowledged):
            yield Reason("acknowledged", message), False


def _find_redundant_kind(status: Status, policy: GatePolicy) -> ComparisonFindingKind | None:
    """Return the remark that a scenario's status makes needless: it says the same by itself."""
    if status == "failing":
        return "undecided"
    is_told = status == "errored" or (status == "skipped" and not policy.allow_skipped)
    return "not_judged" if is_told else None


def _weigh_finding(
    remark: ComparisonFinding,
    name: tuple[str | None, str | None],
    policy: GatePolicy,
    acknowledged: tuple[WaiverStatus, ...],
) -> tuple[Reason, bool]:
    """Return a remark as a reason or a warning, with what was agreed about it."""
    gates, agreed = _is_gating(remark, policy), find_acknowledgement(remark, acknowledged)
    if agreed is None:
        said = f"{remark.message}; {remark.advice}" if remark.advice else remark.message
        return Reason(remark.kind, said, *name), gates
    if agreed.holds:
        return Reason("acknowledged", agreed.message, *name), False
    return Reason(remark.kind, agreed.message, *name), gates


def _is_gating(remark: ComparisonFinding, policy: GatePolicy) -> bool:
    """Say whether a remark is a reason, not a warning: of a scenario only where it is required.

    One of which less is required now was required in the base, and counts as such.
    """
    if remark.kind == "downgraded":
        return True
    is_required = remark.scenario is None or remark.scenario.required
    if remark.kind in {"regression", "undecided"}:
        return is_required and policy.regressions == "fail"
    return is_required and remark.kind in {"vanished", "increase"}
