"""A recorded transcript: its tool calls and answers, and changed copies of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ci_agent_eval.contract.mutations import Mutation
from ci_agent_eval.contract.playback import split_turns
from ci_agent_eval.contract.trajectory import ToolCall, Trajectory, Turn


class Mutant(NamedTuple):
    """A change, and the trajectory with it."""

    mutation: Mutation
    trajectory: Trajectory


class CallPlace(NamedTuple):
    """A tool call and its place."""

    number: int
    """1-based, in the episode."""
    call: ToolCall
    turn: int
    position: int
    """Number of the call in its turn, from 0."""


class AnswerPlace(NamedTuple):
    """The last text of the agent in an exchange, and its place."""

    number: int
    """1-based exchange."""
    text: str
    turn: int


SENTENCE_END = re.compile(r"(?<=[.!?。！？؟])(\s+)")  # noqa: RUF001 - full-width is meant
_OPEN_QUESTION = re.compile(r"\b(?:what|which|who|whose|when|where|why|how)\b", re.IGNORECASE)


def is_question(text: str) -> bool:
    """Return whether a text ends with a question to the user, and so is no answer yet."""
    return text.rstrip().endswith(("?", "？", "؟"))  # noqa: RUF001 - full-width is meant


def asks_to_agree(text: str) -> bool:
    """Return whether a text has a question that yes or no answers."""
    questions = filter(is_question, SENTENCE_END.split(text))
    return any(_OPEN_QUESTION.search(question) is None for question in questions)


@dataclass(frozen=True)
class RecordedTranscript:
    """A trajectory to change."""

    trajectory: Trajectory

    @property
    def turns(self) -> Sequence[Turn]:
        """All turns."""
        return self.trajectory.turns

    @cached_property
    def exchanges(self) -> tuple[range, ...]:
        """The numbers of the turns of each exchange."""
        sizes = [len(turns) for turns in split_turns(self.turns)]
        starts = [sum(sizes[:number]) for number in range(len(sizes))]
        return tuple(range(start, start + size) for start, size in zip(starts, sizes, strict=True))

    @cached_property
    def calls(self) -> tuple[CallPlace, ...]:
        """Every tool call, in order."""
        places = [
            (call, turn, index)
            for turn, content in enumerate(self.turns)
            for index, call in enumerate(content.tool_calls)
        ]
        return tuple(CallPlace(number, *place) for number, place in enumerate(places, start=1))

    @cached_property
    def replies(self) -> tuple[AnswerPlace, ...]:
        """The last text of each exchange that has one."""
        found = [self._find_reply(number, turns) for number, turns in enumerate(self.exchanges, 1)]
        return tuple(reply for reply in found if reply is not None)

    def _find_reply(self, number: int, turns: range) -> AnswerPlace | None:
        texts = {t: self.turns[t].content for t in turns if self.turns[t].role == "assistant"}
        return next((AnswerPlace(number, texts[t], t) for t in reversed(texts) if texts[t]), None)

    @property
    def answers(self) -> tuple[AnswerPlace, ...]:
        """The replies that are no question, and the last one in any case."""
        last = self.replies[-1:]
        return tuple(r for r in self.replies if not is_question(r.text) or r in last)

    def edit_turn(self, turn: int, edit: Callable[[Turn], Turn]) -> RecordedTranscript:
        """Return a copy with one turn changed."""
        turns = list(self.turns)
        turns[turn] = edit(turns[turn])
        return self._copy(turns)

    def edit_calls(
        self, turn: int, edit: Callable[[tuple[ToolCall, ...]], Sequence[ToolCall]]
    ) -> RecordedTranscript:
        """Return a copy with the tool calls of one turn changed."""
        return self.edit_turn(
            turn,
            lambda old: old.model_copy(update={"tool_calls": tuple(edit(old.tool_calls))}),
        )

    def replace_call(self, place: CallPlace, *calls: ToolCall) -> RecordedTranscript:
        """Return a copy with other calls in place of one; without any, the call is missing."""
        position = place.position
        return self.edit_calls(
            place.turn, lambda old: (*old[:position], *calls, *old[position + 1 :])
        )

    def replace_text(self, turn: int, text: str) -> RecordedTranscript:
        """Return a copy with another text in one turn."""
        return self.edit_turn(turn, lambda old: old.model_copy(update={"content": text}))

    def remove_empty_turn(self, turn: int) -> RecordedTranscript:
        """Return a copy without a turn that is empty now, unless it was the only answer."""
        exchange = next(turns for turns in self.exchanges if turn in turns)
        others = [t for t in exchange if t != turn and self.turns[t].role == "assistant"]
        is_empty = not self.turns[turn].content and not self.turns[turn].tool_calls
        if not is_empty or not others:
            return self
        return self._copy([*self.turns[:turn], *self.turns[turn + 1 :]])

    def _copy(self, turns: Sequence[Turn]) -> RecordedTranscript:
        return RecordedTranscript(self.trajectory.model_copy(update={"turns": tuple(turns)}))


def build_mutant(mutation: Mutation, changed: RecordedTranscript) -> Mutant:
    """Return a changed transcript as a mutant."""
    return Mutant(mutation, changed.trajectory)
