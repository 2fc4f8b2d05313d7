"""The result of a simulation; also a mapping, like the result of Opik's `run_simulation`."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from ci_agent_eval.authoring.simulation.judge import SimulationVerdict
from ci_agent_eval.authoring.simulation.message_files import MessageFile
from ci_agent_eval.contract.episode import SideUsage

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


KEYS = (
    "thread_id",
    "conversation_history",
    "project_name",
    "tags",
    "stop_reason",
    "turns",
    "last_reply",
)
"""Keys of the result as a mapping; Opik's keys first."""


@dataclass(frozen=True, slots=True, repr=False)
class SimulationResult(Mapping[str, Any]):
    """A conversation of a simulated user with an app, and why it ended.

    `result.thread_id` and `result["thread_id"]` are the same. Awaiting a result returns it.
    """

    thread_id: str
    exchanges: tuple[SimulationExchange, ...]
    """The user's messages and the app's replies, in order."""
    stop_reason: SimulationStop
    project_name: str | None = None
    tags: tuple[str, ...] = ()
    user: SideUsage = field(default_factory=lambda: SideUsage(cost_usd=0.0))
    """Usage of the model that plays the user; never counted as the agent's."""
    detail: str | None = None
    """Details of the stop reason, if there are any."""
    verdict: SimulationVerdict | None = None
    """The judge's verdict; None without a judge, or if the agent stopped."""
    messages: tuple[dict[str, Any], ...] = field(default=(), compare=False)

    @property
    def conversation_history(self) -> History:
        """Every message as `{"role": ..., "content": ...}`, in order."""
        return copy_history(list(self.messages))

    @property
    def turns(self) -> int:
        """Number of exchanges: a message of the user and its reply."""
        return len(self.exchanges)

    @property
    def last_reply(self) -> str:
        """The app's last reply; empty if it was never asked."""
        return self.exchanges[-1].reply if self.exchanges else ""

    def __repr__(self) -> str:
        """Describe the end; pytest shows it for failed assertions on the result."""
        return f"<simulation: {self.stop_reason} after {self.turns} turns>"

    def __getitem__(self, key: str) -> Any:
        if key not in KEYS:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(KEYS)

    def __len__(self) -> int:
        return len(KEYS)

    def __await__(self) -> Generator[Any, None, Self]:
        return self
        yield
