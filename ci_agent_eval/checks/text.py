"""Checks for required and forbidden text in the agent's messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from ci_agent_eval.checks.base import (
    BaseCheck,
    compute_share,
    format_list,
    format_text,
    require_any,
)
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.fields import Patterns, Texts, validate_fields
from ci_agent_eval.contract.trajectory import ToolCall, Turn

_CONTEXT_LENGTH = 40
"""Characters of the agent's text that a reason quotes on each side of a match."""


@dataclass(frozen=True, slots=True)
class _TextCheck(BaseCheck):
    """Base class of checks that search the agent's messages for texts and regular expressions.

    Python's `re` has no time limit: a pattern with nested repeats, such as `(a+)+b`, can run
    forever on an agent's text. Test authors have to avoid such patterns.
    """

    texts: Texts = ()
    patterns: Patterns = ()
    ignore_case: bool = False

    def __post_init__(self) -> None:
        validate_fields(self)
        require_any(type(self).__name__, self.texts, self.patterns)

    def _compile_patterns(self) -> Iterator[tuple[str, re.Pattern[str]]]:
        """Yield the label and the compiled expression of each text and pattern."""
        case = re.IGNORECASE if self.ignore_case else re.NOFLAG
        for text in self.texts:
            yield repr(text), re.compile(re.escape(text), case)
        for found in cast("tuple[re.Pattern[str], ...]", self.patterns):
            yield f"/{found.pattern}/", re.compile(found.pattern, found.flags | case)


@dataclass(frozen=True, slots=True)
class RequiredText(_TextCheck):
    """The agent's messages contain each of these texts and patterns.

    The score is the share that was found.
    """

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        written = get_agent_texts(episode)
        wanted = list(self._compile_patterns())
        missing = [
            label for label, found in wanted if not any(found.search(text) for text in written)
        ]
        score = compute_share(len(wanted) - len(missing), len(wanted))
        reason = f"not found: {format_list(missing)}" if missing else "the agent wrote it"
        if missing and not any(text.strip() for text in written):
            reason = "the agent wrote nothing"
        statement = f"says {format_list(label for label, _ in wanted)}"
        return (self._build_assertion(statement, not missing, reason, score=score),)


@dataclass(frozen=True, slots=True)
class ForbiddenText(_TextCheck):
    """The agent's messages contain none of these texts and patterns."""

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        unwanted = list(self._compile_patterns())
        matches = [
            f"turn {number} of the agent has {label}: {_quote_match(found)}"
            for number, text in enumerate(get_agent_texts(episode), 1)
            for label, pattern in unwanted
            if (found := pattern.search(text)) is not None
        ]
        reason = "; ".join(matches[:3]) if matches else "the agent wrote none of it"
        if len(matches) > 3:
            reason += f"; and {len(matches) - 3} more"
        statement = f"never says {format_list(label for label, _ in unwanted)}"
        return (self._build_assertion(statement, not matches, reason),)


def _quote_match(found: re.Match[str]) -> str:
    """Return a match with some text before and after it."""
    start = max(found.start() - _CONTEXT_LENGTH, 0)
    end = min(found.end(), found.start() + _CONTEXT_LENGTH)
    return format_text("…" * bool(start) + found.string[start : end + _CONTEXT_LENGTH])


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
