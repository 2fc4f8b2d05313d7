"""The messages of a conversation: a view of the turns that its episode records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field

from ci_agent_eval.contract.trajectory import Role, TokenUsage, ToolCall, Turn


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A recorded message. It is equal to its text."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = field(default=(), repr=False)
    """The agent's tool calls before it."""
    # Values that differ between runs are excluded from the reasons of assertions.
    tokens: TokenUsage | None = field(default=None, repr=False)
    cost_usd: float | None = field(default=None, repr=False)
    latency_ms: float | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """Alias of `content`."""
        return self.content

    def __str__(self) -> str:
        return self.content

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return self.content == other
        return isinstance(other, Message) and astuple(self) == astuple(other)

    def __hash__(self) -> int:
        return hash(self.content)

    def __contains__(self, part: str) -> bool:
        """Return whether the text contains a part: `assert "sorry" in reply`."""
        return part in self.content


@dataclass(frozen=True, slots=True)
class ConversationState:
    """The conversation so far, oldest message first; it grows with every message sent."""

    turns: Callable[[], tuple[Turn, ...]] = field(repr=False)
    """The turns recorded since the conversation began, or was reset."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages."""
        return tuple(build_message(turn) for turn in self.turns())

    @property
    def user_messages(self) -> tuple[Message, ...]:
        """The messages sent by the test."""
        return tuple(message for message in self.messages if message.role == "user")

    @property
    def agent_messages(self) -> tuple[Message, ...]:
        """The agent's replies."""
        return tuple(message for message in self.messages if message.role == "assistant")

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Every tool call, in order."""
        return tuple(call for turn in self.turns() for call in turn.tool_calls)

    @property
    def last(self) -> Message | None:
        """The agent's last reply; None before the first one."""
        replies = self.agent_messages
        return replies[-1] if replies else None


def build_message(turn: Turn) -> Message:
    """Convert a recorded turn to a message."""
    return Message(
        turn.role, turn.content, turn.tool_calls, turn.tokens, turn.cost_usd, turn.latency_ms
    )
