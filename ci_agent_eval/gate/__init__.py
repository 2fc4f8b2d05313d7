"""The gate: decide a verdict from a summary and a policy. A run without proof of success fails."""

from ci_agent_eval.gate.decision import decide_verdict, find_required_share, is_passing
from ci_agent_eval.gate.model import (
    GatePolicy,
    Judgement,
    Reason,
    ReasonData,
    ReasonKind,
    ScenarioStatus,
    Shortfall,
    Thresholds,
    Verdict,
    VerdictConclusion,
)
from ci_agent_eval.gate.reasons import find_shortfalls, sum_suite_rate_tallies

__all__ = [
    "GatePolicy",
    "Judgement",
    "Reason",
    "ReasonData",
    "ReasonKind",
    "ScenarioStatus",
    "Shortfall",
    "Thresholds",
    "Verdict",
    "VerdictConclusion",
    "decide_verdict",
    "find_required_share",
    "find_shortfalls",
    "is_passing",
    "sum_suite_rate_tallies",
]
