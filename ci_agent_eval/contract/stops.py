"""Why a run of an agent ended, and which ends are failures of the agent."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BeforeValidator

from ci_agent_eval.contract.trajectory import Turn

AgentStop = Literal[
    "max_turns",  # it needed one more turn than it was given
    "tool_call_limit",
    "token_limit",  # it used more tokens than its budget allows
    "cost_limit",
    "timeout",
    "refusal",  # the model declined, or its provider's filter did
    "truncated",  # its answer was cut at the model's token limit
    "context_window",  # its conversation no longer fits the model
    "agent_error",  # its own code raised: a tool of it, or what makes its output
    "empty_answer",  # no text, no typed output, no attachment and no tool call
]
"""Ends without an answer that are failures of the agent, unless the test allows them."""

StopReason = Literal[
    "completed",  # the agent gave its answer
    AgentStop,
    "server_error",  # a tool server died, hung or spoke garbage
    "model_error",  # the model's API failed, or answered what nobody could read
    "cancelled",
]
"""Why a run of an agent ended."""


def _parse_stops(value: Any) -> Any:
    """Read one reason or several, in one order."""
    if isinstance(value, str):
        return (value,)
    is_words = isinstance(value, set | frozenset | list | tuple) and all(
        isinstance(word, str) for word in value
    )
    return sorted(set(value)) if is_words else value


AllowedStops = Annotated[tuple[AgentStop, ...], BeforeValidator(_parse_stops)]
"""Ends without an answer that a test allows: one, or several."""

AGENT_STOPS: frozenset[str] = frozenset(get_args(AgentStop))

AGENT_FINISHED = "agent finished"
"""Name of the assertion that fails where a run ended without an answer."""

_EMPTY = "its answer is empty: no text, no typed output, no attachment and no tool call"


class StopCause(NamedTuple):
    """Why a run ended without an answer, and the sentence that says so."""

    reason: StopReason
    error: str | None = None

    @property
    def sentence(self) -> str:
        """The reason, and what is known of it."""
        return f"{self.reason}: {self.error}" if self.error else self.reason


def is_agent_failure(reason: StopReason | None, *, answered: bool) -> bool:
    """Return whether a run that ended so is a failure of the agent.

    A timeout before the model answered even once (`answered`) shows nothing of the agent.
    """
    return reason in AGENT_STOPS and (answered or reason != "timeout")


def find_stop_cause(turn: Turn) -> StopCause | None:
    """Return why the last turn of a run is no answer; None where it is one.

    Refused and truncated are what the provider says; the text is never read for it.
    """
    if turn.finish_reason == "content_filter":
        said = f"the model refused: {turn.content}" if turn.content else "its answer was filtered"
        return StopCause("refusal", said)
    if turn.finish_reason == "length":
        return StopCause("truncated", "its answer was cut at the model's token limit")
    if not turn.content.strip() and not turn.tool_calls:
        return StopCause("empty_answer", _EMPTY)
    return None
