"""Checks: pure objects that turn an episode into assertions with reasons.

`check(RequiredTools(["refund"]))` in a test applies one to the running episode. Optional
packages (jsonschema, pydantic-evals) are imported when a check first needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_agent_eval.errors import create_lazy_getattr

if TYPE_CHECKING:
    from ci_agent_eval.checks.arguments import ArgumentsHold
    from ci_agent_eval.checks.base import Check
    from ci_agent_eval.checks.confirmation import ConfirmedTools
    from ci_agent_eval.checks.conversion import as_check, from_evaluator
    from ci_agent_eval.checks.efficiency import (
        CallsAfterAnswer,
        ErrorRecovery,
        Loops,
        RepeatedCalls,
        StepRatio,
    )
    from ci_agent_eval.checks.full_suite import NoFullSuiteRun
    from ci_agent_eval.checks.judge_questions import ScoringDimension
    from ci_agent_eval.checks.results import ResultShape, ResultsHold
    from ci_agent_eval.checks.rubric import DimensionRubric, Rubric
    from ci_agent_eval.checks.shapes import ArgumentShape, ReplyShape
    from ci_agent_eval.checks.state import FinalState, StateUnchanged
    from ci_agent_eval.checks.text import ForbiddenText, RequiredText
    from ci_agent_eval.checks.tools import (
        ForbiddenTools,
        OrderedTools,
        RequiredTools,
        ToolCallLimits,
    )
    from ci_agent_eval.checks.trajectory import TrajectoryMatch

__all__ = [
    "ArgumentShape",
    "ArgumentsHold",
    "CallsAfterAnswer",
    "Check",
    "ConfirmedTools",
    "DimensionRubric",
    "ErrorRecovery",
    "FinalState",
    "ForbiddenText",
    "ForbiddenTools",
    "Loops",
    "NoFullSuiteRun",
    "OrderedTools",
    "RepeatedCalls",
    "ReplyShape",
    "RequiredText",
    "RequiredTools",
    "ResultShape",
    "ResultsHold",
    "Rubric",
    "ScoringDimension",
    "StateUnchanged",
    "StepRatio",
    "ToolCallLimits",
    "TrajectoryMatch",
    "as_check",
    "from_evaluator",
]

_HOMES = {
    "ArgumentShape": "checks.shapes",
    "ArgumentsHold": "checks.arguments",
    "CallsAfterAnswer": "checks.efficiency",
    "Check": "checks.base",
    "ConfirmedTools": "checks.confirmation",
    "DimensionRubric": "checks.rubric",
    "ErrorRecovery": "checks.efficiency",
    "FinalState": "checks.state",
    "ForbiddenText": "checks.text",
    "ForbiddenTools": "checks.tools",
    "Loops": "checks.efficiency",
    "NoFullSuiteRun": "checks.full_suite",
    "OrderedTools": "checks.tools",
    "RepeatedCalls": "checks.efficiency",
    "ReplyShape": "checks.shapes",
    "RequiredText": "checks.text",
    "RequiredTools": "checks.tools",
    "ResultShape": "checks.results",
    "ResultsHold": "checks.results",
    "Rubric": "checks.rubric",
    "StateUnchanged": "checks.state",
    "ScoringDimension": "checks.judge_questions",
    "StepRatio": "checks.efficiency",
    "ToolCallLimits": "checks.tools",
    "TrajectoryMatch": "checks.trajectory",
    "as_check": "checks.conversion",
    "from_evaluator": "checks.conversion",
}

__getattr__ = create_lazy_getattr(__name__, _HOMES, extra="evals")
