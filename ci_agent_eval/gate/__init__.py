"""The gate: a summary and a policy in, a verdict out. What did not prove itself does not pass."""

from ci_agent_eval.gate.deciding import decide, is_passing, required_share
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
from ci_agent_eval.gate.reasons import shortfalls

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
    "decide",
    "is_passing",
    "required_share",
    "shortfalls",
]
