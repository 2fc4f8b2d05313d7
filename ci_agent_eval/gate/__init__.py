"""The gate: decide a verdict from a summary and a policy. A run without proof of success fails."""

from ci_agent_eval.gate.decision import decide_verdict, find_required_share, is_passing
from ci_agent_eval.gate.model import (
    Conclusion,
    GatePolicy,
    Judgement,
    Reason,
    ReasonData,
    ReasonKind,
    Shortfall,
    Status,
    Thresholds,
    Verdict,
)
from ci_agent_eval.gate.reasons import find_shortfalls

__all__ = [
    "Conclusion",
    "GatePolicy",
    "Judgement",
    "Reason",
    "ReasonData",
    "ReasonKind",
    "Shortfall",
    "Status",
    "Thresholds",
    "Verdict",
    "decide_verdict",
    "find_required_share",
    "find_shortfalls",
    "is_passing",
]
