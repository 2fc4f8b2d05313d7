"""An episode's trajectory split into exchanges: a user's message and the agent's response."""

from __future__ import annotations

from dataclasses import dataclass

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.trajectory import ToolCall, Turn


@dataclass(frozen=True, slots=True)
class EpisodeExchange:
    """A message of the user (none if the agent speaks first) and the agent's response."""

    user_texts: tuple[str, ...]
    """The user's texts; several if the user wrote again before the agent answered."""
    turns: tuple[Turn, ...]
    """The agent's turns."""

    @property
    def reply(self) -> str:
        """The agent's last text; empty if there is none."""
        texts = (turn.content for turn in reversed(self.turns) if turn.content.strip())
        return next(texts, "")

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(call for turn in self.turns for call in turn.tool_calls)


def split_exchanges(episode: Episode) -> tuple[EpisodeExchange, ...]:
    """Split an episode into exchanges, in order; none without a trajectory."""
    found: list[tuple[list[str], list[Turn]]] = []
    for turn in get_turns(episode):
        if turn.role == "user" and (not found or found[-1][1]):
            found.append(([], []))
        if turn.role == "user":
            found[-1][0].append(turn.content)
        elif turn.role == "assistant":
            if not found:
                found.append(([], []))
            found[-1][1].append(turn)
    return tuple(
        EpisodeExchange(tuple(user_texts), tuple(agent_turns)) for user_texts, agent_turns in found
    )


def get_turns(episode: Episode) -> tuple[Turn, ...]:
    """Return the turns of an episode; none without a trajectory."""
    return episode.trajectory.turns if episode.trajectory else ()


def get_tool_calls(episode: Episode) -> tuple[ToolCall, ...]:
    """Return every tool call of an episode, in order."""
    return tuple(call for turn in get_turns(episode) for call in turn.tool_calls)


def get_replies(episode: Episode) -> tuple[str, ...]:
    """Return the agent's reply of each exchange; an empty text if it did not reply."""
    return tuple(exchange.reply for exchange in split_exchanges(episode))


def get_last_reply(episode: Episode) -> str:
    """Return the agent's last reply; empty if there is none."""
    return next(reversed(get_replies(episode)), "")


def get_user_texts(episode: Episode) -> list[str]:
    """Return the text of each of the user's messages."""
    return [text for exchange in split_exchanges(episode) for text in exchange.user_texts]


def get_agent_texts(episode: Episode) -> tuple[str, ...]:
    """Return the text of each of the agent's turns, also of turns that are no reply yet."""
    return tuple(turn.content for turn in get_turns(episode) if turn.role == "assistant")
