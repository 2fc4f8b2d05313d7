"""Stop reasons of agent runs, and which of them are agent failures."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BeforeValidator

from ci_agent_eval.contract.trajectory import Turn

AgentStop = Literal[
    "max_turns",  # it needed more turns than its limit
    "tool_call_limit",
    "token_limit",  # it used more tokens than its budget allows
    "cost_limit",
    "timeout",
    "refusal",  # the model declined, or its provider's filter did
    "truncated",  # its answer exceeded the model's token limit
    "context_window",  # its conversation no longer fits the model
    "agent_error",  # its own code raised: a tool or an output function
    "empty_answer",  # no text, no typed output, no attachment and no tool call
]
"""Stops without an answer that are agent failures, unless the test allows them."""

StopReason = Literal[
    "completed",  # the agent gave its answer
    AgentStop,
    "server_error",  # a tool server died, hung or broke the protocol
    "model_error",  # the model's API failed, or its response was invalid
    "cancelled",
]
"""Why an agent's run ended."""


def _parse_stops(value: Any) -> Any:
    """Accept one stop reason or several; sort them."""
    if isinstance(value, str):
        return (value,)
    is_words = isinstance(value, set | frozenset | list | tuple) and all(
        isinstance(word, str) for word in value
    )
    return tuple(sorted(set(value))) if is_words else value


AllowedStops = Annotated[
    tuple[AgentStop, ...],
    BeforeValidator(_parse_stops),
    f"one or several of {', '.join(get_args(AgentStop))}",
]
"""Stop reasons without an answer that a test allows."""

AGENT_STOPS: frozenset[str] = frozenset(get_args(AgentStop))

AGENT_FINISHED = "agent finished"
"""Name of the assertion that fails if a run ended without an answer."""

_EMPTY = "its answer is empty: no text, no typed output, no attachment and no tool call"


class Stop(NamedTuple):
    """The reason a run ended, with its error message."""

    reason: StopReason
    error: str = ""
    needs_turn: bool = False
    """Whether the run needed one more turn than allowed."""

    @property
    def sentence(self) -> str:
        """The reason, with the error message if there is one."""
        return f"{self.reason}: {self.error}" if self.error else self.reason


COMPLETED = Stop("completed")


def is_agent_failure(reason: StopReason | None, *, answered: bool) -> bool:
    """Return whether a stop reason is an agent failure.

    A timeout before the model `answered` even once says nothing about the agent.
    """
    return reason in AGENT_STOPS and (answered or reason != "timeout")


def find_stop_cause(turn: Turn) -> Stop | None:
    """Return why the last turn of a run is not an answer; None if it is one.

    Refusal and truncation are read from the provider's finish reason, never from the text.
    """
    if turn.finish_reason == "content_filter":
        error = f"the model refused: {turn.content}" if turn.content else "its answer was filtered"
        return Stop("refusal", error)
    if turn.finish_reason == "length":
        text = f"its answer was cut at the token limit{_describe_reasoning(turn)}"
        return Stop("truncated", text)
    if not turn.content.strip() and not turn.tool_calls:
        return Stop("empty_answer", f"{_EMPTY}{_describe_reasoning(turn)}")
    return None


def _describe_reasoning(turn: Turn) -> str:
    """Return how many of the output tokens were reasoning; empty if none or unknown."""
    if turn.tokens is None or not turn.tokens.reasoning:
        return ""
    return f"; {turn.tokens.reasoning:,} of {turn.tokens.output:,} output tokens were reasoning"
