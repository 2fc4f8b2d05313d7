"""Stops of PydanticAI's runs: by their errors, and by the model's last response."""

from __future__ import annotations

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelRetry,
    ToolRetryError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ToolReturnPart

from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.contract.stops import Stop, StopReason
from ci_agent_eval.engine.run_record import RunRecord
from ci_agent_eval.engine.stops import describe_own_error, look_up_error


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
    describe = describe_own_error if reason == "agent_error" else describe_error
    return Stop(reason, f"{text}: {describe(error)}")


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


def _find_unusable_answer(error: Exception, record: RunRecord) -> Stop | None:
    """Return the stop of a last response that the loop could not use; else None."""
    if not isinstance(error, UnexpectedModelBehavior) or record.is_requesting:
        return None
    return record.find_unfinished_stop()


def _is_tool_retry_exhausted(error: Exception) -> bool:
    """Return whether the error means that a tool's retries are exhausted."""
    if not isinstance(error, UnexpectedModelBehavior) or isinstance(error, ContentFilterError):
        return False
    cause = error.__cause__
    if isinstance(cause, ToolRetryError):
        return isinstance(cause.tool_retry, ToolReturnPart)
    # Arguments that fail their schema raise pydantic's ValidationError, which is a ValueError.
    return isinstance(cause, ModelRetry | ValueError) and "Tool" in error.message
