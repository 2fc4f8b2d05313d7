"""Which end an error is: one table, tried from top to bottom."""

from __future__ import annotations

from pydantic_ai import exceptions
from pydantic_ai.exceptions import (
    ContentFilterError,
    IncompleteToolCall,
    ModelAPIError,
    ModelRetry,
    RunCancelled,
    ToolRetryError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)
from pydantic_ai.messages import ToolReturnPart

from ci_agent_eval.contract.episode import StopReason
from ci_agent_eval.engine.faults import ModelError, ServerError
from ci_agent_eval.engine.limits import Stop
from ci_agent_eval.engine.record import RunRecord, describe

# Older releases have no such class: there cut calls have one of their own, cut texts a message.
_Cut: type[Exception] = getattr(exceptions, "OutputTokenLimitExceeded", IncompleteToolCall)
_CUT = "the model's answer was cut at max_tokens"
_CUT_MESSAGE = "Model token limit ("

_ENDS: tuple[tuple[type[Exception], StopReason, str], ...] = (
    (RunCancelled, "cancelled", "it was stopped from inside"),
    (UsageLimitExceeded, "max_turns", "it was not done when its turns were used up"),
    (_Cut, "token_limit", _CUT),
    (ContentFilterError, "refusal", "the model refused, or was filtered"),
    (ModelAPIError, "model_error", "the model's API failed"),
    (ModelError, "model_error", "the model gave no answer"),
    (UnexpectedModelBehavior, "model_error", "the model's answer was of no use"),
    (ServerError, "server_error", "a tool server failed"),
)


def stop_for(error: Exception, record: RunRecord) -> Stop:
    """Return the end that an error of the loop, of a model or of a server makes."""
    if isinstance(error, Warning):
        return Stop("model_error", f"a warning that was made an error (-W error): {error}")
    if _is_tool_given_up(error):
        said = str(error).partition(" Consider ")[0]
        return Stop("tool_call_limit", f"{said} The last time: {error.__cause__}")
    known = _known(error)
    if known is not None:
        return known
    if record.broken_tool is not None:
        return Stop("server_error", f"tool {record.broken_tool!r} broke: {describe(error)}")
    if record.asking:
        return Stop("model_error", f"the model's answer could not be read: {describe(error)}")
    return Stop("server_error", f"a tool server could not be used: {describe(error)}")


def _known(error: Exception) -> Stop | None:
    """Return the end that the table has for an error."""
    if isinstance(error, UnexpectedModelBehavior) and error.message.startswith(_CUT_MESSAGE):
        return Stop("token_limit", f"{_CUT}: {describe(error)}")
    for kind, reason, what in _ENDS:
        if isinstance(error, kind):
            return Stop(reason, f"{what}: {_without_advice(error)}")
    return None


def _is_tool_given_up(error: Exception) -> bool:
    """Tell a tool that was called wrongly too often from answers that were of no use."""
    if not isinstance(error, UnexpectedModelBehavior) or isinstance(error, ContentFilterError):
        return False
    cause = error.__cause__
    if isinstance(cause, ToolRetryError):
        return isinstance(cause.tool_retry, ToolReturnPart)
    # Arguments that fail their schema raise pydantic's ValidationError, which is a ValueError.
    return isinstance(cause, ModelRetry | ValueError) and "Tool" in error.message


def _without_advice(error: Exception) -> str:
    """Return what an error says, without PydanticAI's hints at its own documentation."""
    return describe(error).partition(" Consider raising the limit")[0]
