"""The decision: each scenario judged, all reasons gathered. Nothing speaks against a success."""

from __future__ import annotations

from fractions import Fraction

from ci_agent_eval.analysis.comparison.model import Comparison, NoBaseline
from ci_agent_eval.analysis.comparison.remarks import Increases
from ci_agent_eval.analysis.summary import ScenarioSummary, Summary
from ci_agent_eval.analysis.waivers import Agreement
from ci_agent_eval.gate.compared import weighed_remarks
from ci_agent_eval.gate.model import (
    GatePolicy,
    Judgement,
    Status,
    Thresholds,
    Verdict,
    share_of,
)
from ci_agent_eval.gate.reasons import reasons_of, warnings_of


def decide(
    summary: Summary,
    policy: GatePolicy,
    comparison: Comparison | NoBaseline | None = None,
    acknowledged: tuple[Agreement, ...] = (),
) -> Verdict:
    """Judge a summary by a policy, and by what comparing it found; None: nothing was compared.

    What comparing found and is acknowledged does not gate.
    """
    judgements = tuple(_judge(scenario, policy) for scenario in summary.scenarios)
    increases = Increases(policy.max_cost_increase, policy.max_latency_increase)
    compared = tuple(weighed_remarks(comparison, judgements, policy, acknowledged))
    reasons = (
        *reasons_of(summary, judgements, policy),
        *(reason for reason, gates in compared if gates),
    )
    return Verdict(
        conclusion="failure" if reasons else "success",
        reasons=reasons,
        warnings=(
            *warnings_of(summary, judgements, policy),
            *(reason for reason, gates in compared if not gates),
        ),
        judgements=judgements,
        thresholds=Thresholds(policy.eval_min_pass_rate, policy.eval_min_score),
        increases=increases,
        acknowledged=acknowledged,
    )


def is_passing(scenario: ScenarioSummary, policy: GatePolicy) -> bool | None:
    """Say whether a scenario reaches the pass rate it needs; None: it was not judged."""
    if not scenario.tally.judged:
        return None
    return _status(scenario, _required_rate(scenario, policy)) != "failing"


def required_share(scenario: ScenarioSummary, policy: GatePolicy) -> float:
    """Return the share of a scenario's iterations that must pass, to six decimals."""
    share = Fraction(str(_required_rate(scenario, policy)))
    if scenario.min_passes is not None and scenario.tally.total:
        share = max(share, Fraction(scenario.min_passes, scenario.tally.total))
    return round(float(min(share, Fraction(1))), 6)


def _judge(scenario: ScenarioSummary, policy: GatePolicy) -> Judgement:
    required = _required_rate(scenario, policy)
    return Judgement(
        scenario.scenario_id,
        scenario.gate,
        _status(scenario, required),
        required,
        scenario.min_passes,
        scenario.agent,
    )


def _required_rate(scenario: ScenarioSummary, policy: GatePolicy) -> float:
    """Return the scenario's own rate; the stricter one where only some of its tests bring one."""
    own = scenario.min_pass_rate
    if own is None:
        return policy.min_pass_rate if scenario.policy_applies else 0.0
    return max(own, policy.min_pass_rate) if scenario.policy_applies else own


def _status(scenario: ScenarioSummary, required: float) -> Status:
    tally = scenario.tally
    if not tally.judged:
        return "errored" if tally.error else "skipped"
    enough = tally.passed >= (scenario.min_passes or 0)
    if not enough or tally.passed < share_of(required, tally.judged):
        return "failing"
    return "incomplete" if scenario.unjudged_iterations else "passing"
