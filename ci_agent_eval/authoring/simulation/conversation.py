"""A simulation's messages, and the reasons why it can end. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from ci_agent_eval.authoring.simulation.message_files import MessageFile

SimulationStop = Literal[
    "goal_reached",  # the predicate `goal` returned true
    "stop_token",  # the user wrote the stop token
    "stop_when",  # the predicate `stop_when` returned true
    "judge_verdict",  # the judge decided
    "max_turns",  # the limit of exchanges was reached
    "script_ended",  # the script has no further message or step
    "off_script",  # no rule of the script matches the app's reply
    "agent_stopped",  # the agent's run ended without an answer
]
"""Why a simulation ended."""

STOP_TOKEN = "[DONE]"  # noqa: S105 - no secret
History: TypeAlias = list[dict[str, Any]]
"""Messages as OpenAI's chat API has them, oldest first."""


class SimulationExchange(NamedTuple):
    """A user's message and the app's reply; the message is None if the agent speaks first."""

    message: str | None
    reply: str


class UserMessage(NamedTuple):
    """A user's message."""

    text: str
    """Without the stop token; empty if there is nothing to send."""
    is_last: bool
    """Whether the user leaves after the reply to it."""
    files: tuple[MessageFile, ...] = ()


def copy_history(history: History) -> History:
    """Return the messages as new dicts, so that no receiver changes those of another."""
    return [dict(message) for message in history]


def parse_user_message(text: str, stop_token: str | None) -> UserMessage:
    """Remove the stop token, and the text after it, from a user's message."""
    if not stop_token or stop_token not in text:
        return UserMessage(text, is_last=False)
    return UserMessage(text.partition(stop_token)[0].strip(), is_last=True)


def fill_facts(text: str, facts: Mapping[str, str]) -> str:
    """Return a text in which `{name}` is replaced by the fact of that name."""
    if not facts:
        return text
    pattern = "|".join(re.escape("{" + name + "}") for name in facts)
    return re.sub(pattern, lambda found: facts[found[0][1:-1]], text)


def find_last_reply(history: History) -> str:
    """Return the app's last reply; empty before the first one."""
    replies = (
        message["content"]
        for message in reversed(history)
        if message["role"] == "assistant" and "tool_calls" not in message
    )
    return next(replies, "")
