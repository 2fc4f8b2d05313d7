"""Stops of errors, by a table in order of priority, and of the model's last response."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.exceptions import (
    ContentFilterError,
    IncompleteToolCall,
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelRetry,
    RunCancelled,
    RunTimedOut,
    ToolRetryError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)
from pydantic_ai.messages import ModelResponse, ToolReturnPart

from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.contract.stops import StopReason, find_stop_cause
from ci_agent_eval.contract.trajectory import Turn
from ci_agent_eval.engine.infrastructure_errors import ModelError, ServerError
from ci_agent_eval.engine.limits import Stop
from ci_agent_eval.engine.run_record import RunRecord
from ci_agent_eval.engine.turns import convert_to_turns

_STOPS_BY_ERROR: tuple[tuple[type[Exception], StopReason, str], ...] = (
    (RunTimedOut, "timeout", "its own time was up"),
    (RunCancelled, "cancelled", "it was stopped from inside"),
    (UsageLimitExceeded, "max_turns", "it was not done when its turns were used up"),
    (IncompleteToolCall, "truncated", "the model's tool call was cut at its token limit"),
    (ContentFilterError, "refusal", "the model refused, or was filtered"),
    (ModelContextWindowExceededError, "context_window", "the request no longer fits the model"),
    (ModelAPIError, "model_error", "the model's API failed"),
    (ModelError, "model_error", "the model gave no answer"),
    (UnexpectedModelBehavior, "model_error", "the model's answer was of no use"),
    (ServerError, "server_error", "a tool server failed"),
)

CONTEXT_WINDOW = "context_length_exceeded"
"""Code of OpenAI-compatible APIs for a request that does not fit the model."""


def classify_error(error: Exception, record: RunRecord) -> Stop:
    """Return the stop of an error of the loop, a model or a server."""
    if isinstance(error, Warning):
        return Stop("model_error", f"a warning that was made an error (-W error): {error}")
    if _is_tool_retry_exhausted(error):
        message = str(error).partition(" Consider ")[0]
        return Stop("tool_call_limit", f"{message} The last time: {error.__cause__}")
    known = _find_unusable_answer(error, record) or look_up_error(error)
    if known is not None:
        return known
    reason, text = _classify_unknown_error(record)
    return Stop(reason, f"{text}: {describe_error(error)}")


def _classify_unknown_error(record: RunRecord) -> tuple[StopReason, str]:
    """Return the stop of an error outside the table, by the state of the run."""
    if record.broken_tool is not None:
        reason: StopReason = "agent_error" if record.is_own_tool else "server_error"
        return reason, f"tool {record.broken_tool!r} broke"
    if record.is_requesting:
        return "model_error", "the model's answer could not be read"
    if not record.has_servers:
        return "agent_error", "the agent's own code raised"
    return "server_error", "a tool server could not be used"


def look_up_error(error: BaseException) -> Stop | None:
    """Return the stop of an error in the table; of a group, the stop common to all."""
    if isinstance(error, BaseExceptionGroup):
        ends = [look_up_error(one) for one in error.exceptions]
        return ends[-1] if len({end and end.reason for end in ends}) == 1 else None
    if getattr(error, "code", None) == CONTEXT_WINDOW:
        return Stop(
            "context_window", f"the request no longer fits the model: {describe_error(error)}"
        )
    for kind, reason, text in _STOPS_BY_ERROR:
        if isinstance(error, kind):
            is_cut_off = reason == "max_turns"
            return Stop(reason, f"{text}: {_strip_advice(error)}", needs_turn=is_cut_off)
    return None


def find_unfinished_stop(turns: Sequence[Turn]) -> Stop | None:
    """Return the stop of a last answer that is empty, refused or cut; else None."""
    answers = [turn for turn in turns if turn.role == "assistant"]
    found = find_stop_cause(answers[-1]) if answers else None
    return found and Stop(found.reason, found.error or "")


def find_filter_stop(response: ModelResponse) -> Stop | None:
    """Return the stop of a refused or filtered response; else None."""
    is_filtered = response.finish_reason == "content_filter"
    return find_unfinished_stop(convert_to_turns([response])) if is_filtered else None


def _find_unusable_answer(error: Exception, record: RunRecord) -> Stop | None:
    """Return the stop of a last response that the loop could not use; else None."""
    if (
        not isinstance(error, UnexpectedModelBehavior)
        or record.is_requesting
        or not record.last_answer
    ):
        return None
    return find_unfinished_stop(convert_to_turns([record.last_answer]))


def _is_tool_retry_exhausted(error: Exception) -> bool:
    """Return whether the error means that a tool's retries are exhausted."""
    if not isinstance(error, UnexpectedModelBehavior) or isinstance(error, ContentFilterError):
        return False
    cause = error.__cause__
    if isinstance(cause, ToolRetryError):
        return isinstance(cause.tool_retry, ToolReturnPart)
    # Arguments that fail their schema raise pydantic's ValidationError, which is a ValueError.
    return isinstance(cause, ModelRetry | ValueError) and "Tool" in error.message


def _strip_advice(error: BaseException) -> str:
    """Describe an error without PydanticAI's hints at its documentation."""
    return describe_error(error).partition(" Consider raising the limit")[0]
