"""The conversation so far, and the pure rules by which it ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

SimulationStop = Literal[
    "goal_reached",  # the predicate `goal` said so
    "stop_token",  # the user said the stop token
    "stop_when",  # the predicate `stop_when` said so
    "max_turns",  # the exchanges were used up
    "script_ended",  # the script has no further message
    "off_script",  # no rule of the script answers what the app replied
    "agent_stopped",  # the agent's run ended without an answer of its own
]
"""Why a simulation ended."""

STOP_TOKEN = "[DONE]"  # noqa: S105 - no secret
History: TypeAlias = list[dict[str, str]]


class SimulationExchange(NamedTuple):
    """What the user said, and what the app replied to it."""

    message: str
    reply: str


class UserMessage(NamedTuple):
    """A message of the user."""

    text: str
    """Without the stop token; empty where there is nothing to deliver."""
    last: bool
    """The user leaves once the reply to it has come."""


def build_history(exchanges: Iterable[SimulationExchange]) -> History:
    """Return the messages as `{"role": ..., "content": ...}`; new ones at each call."""
    history: History = []
    for message, reply in exchanges:
        history.append({"role": "user", "content": message})
        history.append({"role": "assistant", "content": reply})
    return history


def parse_user_message(text: str, stop_token: str | None) -> UserMessage:
    """Take the stop token out of what the user said; what follows it is not said."""
    if not stop_token or stop_token not in text:
        return UserMessage(text, last=False)
    return UserMessage(text.partition(stop_token)[0].strip(), last=True)


def find_last_reply(history: History) -> str:
    """Return what the app said last; empty before it said anything."""
    replies = (m["content"] for m in reversed(history) if m["role"] == "assistant")
    return next(replies, "")
