"""An episode as exchanges: what the user said, and what the agent did and said upon it."""

from __future__ import annotations

from dataclasses import dataclass

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.trajectory import ToolCall, Turn


@dataclass(frozen=True, slots=True)
class EpisodeExchange:
    """One message of the user (or none, where the agent speaks first) and what followed."""

    said: tuple[str, ...]
    """The user's words; more than one text where the user spoke again before the agent."""
    turns: tuple[Turn, ...]
    """The agent's turns."""

    @property
    def reply(self) -> str:
        """The last text of the agent; empty where it has none."""
        texts = (turn.content for turn in reversed(self.turns) if turn.content.strip())
        return next(texts, "")

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(call for turn in self.turns for call in turn.tool_calls)


def split_exchanges(episode: Episode) -> tuple[EpisodeExchange, ...]:
    """Return the exchanges of an episode, in order; none without a trajectory."""
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
    return tuple(EpisodeExchange(tuple(said), tuple(did)) for said, did in found)


def get_turns(episode: Episode) -> tuple[Turn, ...]:
    """Return the turns of an episode; none without a trajectory."""
    return episode.trajectory.turns if episode.trajectory else ()


def get_tool_calls(episode: Episode) -> tuple[ToolCall, ...]:
    """Return every tool call of an episode, in order."""
    return tuple(call for turn in get_turns(episode) for call in turn.tool_calls)


def get_replies(episode: Episode) -> tuple[str, ...]:
    """Return the agent's reply of each exchange; an empty text where it gave none."""
    return tuple(exchange.reply for exchange in split_exchanges(episode))


def get_agent_texts(episode: Episode) -> tuple[str, ...]:
    """Return all the agent wrote, turn by turn, also what was no reply yet."""
    return tuple(turn.content for turn in get_turns(episode) if turn.role == "assistant")
