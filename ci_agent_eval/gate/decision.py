"""Judge every scenario and collect the reasons to fail; no reason means success."""

from __future__ import annotations

from fractions import Fraction

from ci_agent_eval.analysis.comparison.model import Comparison, NoBaseline
from ci_agent_eval.analysis.summary import ScenarioSummary, Summary
from ci_agent_eval.analysis.waivers import WaiverStatus
from ci_agent_eval.gate.model import (
    GatePolicy,
    Judgement,
    Reason,
    ScenarioStatus,
    Thresholds,
    Verdict,
    compute_exact_share,
)
from ci_agent_eval.gate.reasons import list_reasons, list_warnings


def decide_verdict(
    summary: Summary,
    policy: GatePolicy,
    comparison: Comparison | NoBaseline | None = None,
    acknowledged: tuple[WaiverStatus, ...] = (),
) -> Verdict:
    """Decide the verdict on a summary and its baseline comparison; None: nothing was compared.

    Acknowledged comparison findings do not gate.
    """
    judgements = tuple(_judge_scenario(scenario, policy) for scenario in summary.scenarios)
    compared = _weigh_comparison(comparison, judgements, policy, acknowledged)
    reasons = (
        *list_reasons(summary, judgements, policy),
        *(reason for reason, gates in compared if gates),
    )
    return Verdict(
        conclusion="failure" if reasons else "success",
        reasons=reasons,
        warnings=(
            *list_warnings(summary, judgements, policy),
            *(reason for reason, gates in compared if not gates),
        ),
        judgements=judgements,
        thresholds=Thresholds(
            policy.eval_min_pass_rate, policy.eval_min_score, policy.suite_min_pass_rate
        ),
        increases=policy.increases,
        acknowledged=acknowledged,
    )


def _weigh_comparison(
    comparison: Comparison | NoBaseline | None,
    judgements: tuple[Judgement, ...],
    policy: GatePolicy,
    acknowledged: tuple[WaiverStatus, ...],
) -> tuple[tuple[Reason, bool], ...]:
    """Return a reason for each comparison finding, and whether it fails the gate."""
    if comparison is None:
        return ()
    from ci_agent_eval.gate.comparison_reasons import weigh_findings  # noqa: PLC0415 - start-up

    return tuple(weigh_findings(comparison, judgements, policy, acknowledged))


def is_passing(scenario: ScenarioSummary, policy: GatePolicy) -> bool | None:
    """Return whether a scenario reaches its required pass rate; None: it was not judged."""
    if not scenario.tally.judged:
        return None
    return _find_status(scenario, _find_required_rate(scenario, policy)) != "failing"


def find_required_share(scenario: ScenarioSummary, policy: GatePolicy) -> float:
    """Return the share of a scenario's iterations that must pass, to six decimals."""
    share = Fraction(str(_find_required_rate(scenario, policy)))
    if scenario.min_passes is not None and scenario.tally.total:
        share = max(share, Fraction(scenario.min_passes, scenario.tally.total))
    return round(float(min(share, Fraction(1))), 6)


def _judge_scenario(scenario: ScenarioSummary, policy: GatePolicy) -> Judgement:
    required = _find_required_rate(scenario, policy)
    return Judgement(
        scenario.scenario_id,
        scenario.gate,
        _find_status(scenario, required),
        required,
        scenario.min_passes,
        scenario.agent,
        policy.suite_min_pass_rate is not None and _has_policy_rate_only(scenario),
    )


def _has_policy_rate_only(scenario: ScenarioSummary) -> bool:
    """Return whether a strict required scenario has no own required rate."""
    own = scenario.min_pass_rate is not None or scenario.min_passes is not None
    return scenario.gate == "required" and scenario.mode == "strict" and not own


def _find_required_rate(scenario: ScenarioSummary, policy: GatePolicy) -> float:
    """Return a scenario's own rate, or the stricter one if the policy's rate applies, too."""
    own = scenario.min_pass_rate
    if own is None:
        return policy.min_pass_rate if scenario.policy_applies else 0.0
    return max(own, policy.min_pass_rate) if scenario.policy_applies else own


def _find_status(scenario: ScenarioSummary, required: float) -> ScenarioStatus:
    tally = scenario.tally
    if not tally.judged:
        return "errored" if tally.error else "skipped"
    if scenario.adaptive is not None:
        from ci_agent_eval.analysis.adaptive_iterations import (  # noqa: PLC0415 - start-up
            decide_required_rate,
        )

        decided = decide_required_rate(tally.passed, tally.failed, required)
        if decided is not None and not scenario.unjudged_iterations:
            return "failing" if decided == "below_required" else "passing"
    enough = tally.passed >= (scenario.min_passes or 0)
    if not enough or tally.passed < compute_exact_share(required, tally.judged):
        return "failing"
    return "incomplete" if scenario.unjudged_iterations or _is_undecided(scenario) else "passing"


def _is_undecided(scenario: ScenarioSummary) -> bool:
    """Return whether adaptive iterations ended before they decided on the required rate."""
    adaptive = scenario.adaptive
    if adaptive is None or scenario.tally.total >= adaptive.maximum:
        return False
    return adaptive.stop in {None, "budget", "unfinished", "not_judged"}
