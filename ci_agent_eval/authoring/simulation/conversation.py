"""A simulation's messages, and the reasons why it can end. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

SimulationStop = Literal[
    "goal_reached",  # the predicate `goal` returned true
    "stop_token",  # the user wrote the stop token
    "stop_when",  # the predicate `stop_when` returned true
    "max_turns",  # the limit of exchanges was reached
    "script_ended",  # the script has no further message
    "off_script",  # no rule of the script matches the app's reply
    "agent_stopped",  # the agent's run ended without an answer
]
"""Why a simulation ended."""

STOP_TOKEN = "[DONE]"  # noqa: S105 - no secret
History: TypeAlias = list[dict[str, str]]


class SimulationExchange(NamedTuple):
    """A user's message and the app's reply."""

    message: str
    reply: str


class UserMessage(NamedTuple):
    """A user's message."""

    text: str
    """Without the stop token; empty if there is nothing to send."""
    is_last: bool
    """Whether the user leaves after the reply to it."""


def build_history(exchanges: Iterable[SimulationExchange]) -> History:
    """Return the messages as new dicts `{"role": ..., "content": ...}`."""
    history: History = []
    for message, reply in exchanges:
        history.append({"role": "user", "content": message})
        history.append({"role": "assistant", "content": reply})
    return history


def parse_user_message(text: str, stop_token: str | None) -> UserMessage:
    """Remove the stop token, and the text after it, from a user's message."""
    if not stop_token or stop_token not in text:
        return UserMessage(text, is_last=False)
    return UserMessage(text.partition(stop_token)[0].strip(), is_last=True)


def find_last_reply(history: History) -> str:
    """Return the app's last reply; empty before the first one."""
    replies = (m["content"] for m in reversed(history) if m["role"] == "assistant")
    return next(replies, "")
