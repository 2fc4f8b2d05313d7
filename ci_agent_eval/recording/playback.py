"""The playback of one episode: recorded answers in place of the agent's."""

from __future__ import annotations

from typing import NamedTuple

from ci_agent_eval.contract.playback import Play, PlaybackRecord, split_turns
from ci_agent_eval.contract.stops import StopReason
from ci_agent_eval.contract.trajectory import Turn
from ci_agent_eval.errors import InputError

MAX_EXTRA = 100
"""Questions after the last recorded answer; a test that asks more would never end."""


class PlayedAnswer(NamedTuple):
    """The turns of one answer, the user's message first, and why the agent's run ended."""

    turns: tuple[Turn, ...]
    stop_reason: StopReason

    @property
    def text(self) -> str:
        """The last text of the agent; empty if there is none."""
        texts = (t.content for t in reversed(self.turns) if t.role == "assistant" and t.content)
        return next(texts, "")


class EpisodePlayback:
    """Gives the answers of a play in order, whatever the test says."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self._exchanges = split_turns(play.trajectory.turns)
        self._asked = 0
        self._has_own_turns = False
        self._is_judged = False

    @property
    def has_answers(self) -> bool:
        """Whether there are recorded answers that the test has not asked for."""
        return self._asked < len(self._exchanges)

    def take_answer(self, message: str | None) -> PlayedAnswer:
        """Return the next answer; after the last one its text again, without tool calls.

        Raises InputError for a recorded exception of the agent, which cannot be played, without
        a recording, and for a test that never stops asking.
        """
        number, self._asked = self._asked, self._asked + 1
        last = len(self._exchanges) - 1
        turns = self._exchanges[min(number, last)] if self._exchanges else ()
        answers = [turn for turn in turns if turn.role == "assistant"]
        if not answers or number > last + MAX_EXTRA:
            raise InputError("playback: no answer is recorded for this message")
        if number > last:
            question = () if message is None else (Turn(role="user", content=message),)
            again = answers[-1].model_copy(update={"tool_calls": ()})
            return PlayedAnswer((*question, again), "completed")
        stop = self.play.stop_reason if number == last else None
        return PlayedAnswer(_replace_message(turns, message), stop or "completed")

    def get_next_message(self) -> str | None:
        """Return the user's message before the next answer; None after the last one."""
        turns = self._exchanges[self._asked] if self.has_answers else ()
        return next((turn.content for turn in turns if turn.role == "user"), None)

    def note_judge(self) -> None:
        """Note that the test has a rubric, which is not judged."""
        self._is_judged = True

    def refuse_own_turn(self) -> None:
        """Raise InputError: the test records the turns of an agent that it calls itself."""
        self._has_own_turns = True
        raise InputError(
            "playback: the test records its turns itself; let `@conversation`, `aitest_run` or a "
            "simulation ask the agent"
        )

    def build_record(self) -> PlaybackRecord:
        """Return how the test has used the play so far."""
        recorded = len(self._exchanges)
        return PlaybackRecord(
            answers=min(self._asked, recorded),
            unused=max(recorded - self._asked, 0),
            extra=max(self._asked - recorded, 0),
            own_turns=self._has_own_turns,
            is_judged=self._is_judged,
        )


def _replace_message(turns: tuple[Turn, ...], message: str | None) -> tuple[Turn, ...]:
    """Return an exchange with the message of this test run, without turns that it injects."""
    own = [turn for turn in turns if not turn.injected]
    places = [place for place, turn in enumerate(own) if turn.role == "user"]
    if places and message is not None:
        own[places[0]] = own[places[0]].model_copy(update={"content": message})
    return tuple(own)
