"""Playback: recorded trajectories that tests get in place of their agents' answers."""

from __future__ import annotations

from collections.abc import Iterable

from ci_agent_eval.contract.base import Count, FrozenModel
from ci_agent_eval.contract.stops import StopReason
from ci_agent_eval.contract.trajectory import Trajectory, Turn

PLAYBACK_KEY = "playback"
"""Key of a played episode's metadata that holds its `PlaybackRecord`."""


class Play(FrozenModel):
    """A trajectory to play to a test, with what else its agent reported."""

    trajectory: Trajectory
    stop_reason: StopReason | None = None
    agent: str | None = None
    model: str | None = None
    tools: tuple[str, ...] = ()


class PlannedTest(FrozenModel):
    """A test and its plays; the first one is the unchanged recording."""

    nodeid: str
    """Without the iteration at its end."""
    plays: tuple[Play, ...]


class PlaybackPlan(FrozenModel):
    """The file of `--episode-playback`."""

    tests: tuple[PlannedTest, ...]


class PlaybackRecord(FrozenModel):
    """How a test used its play."""

    answers: Count = 0
    """Recorded answers that the test asked for."""
    unused: Count = 0
    """Recorded answers that it did not ask for."""
    extra: Count = 0
    """Questions after the last recorded answer."""
    own_turns: bool = False
    """Whether the test recorded a turn of an agent that it calls itself."""
    is_judged: bool = False
    """Whether it has a rubric; judges are not asked, and their assertions pass."""

    @property
    def is_exact(self) -> bool:
        """Whether the test asked for exactly the recorded answers."""
        return bool(self.answers) and not (self.unused or self.extra or self.own_turns)


def split_turns(turns: Iterable[Turn]) -> tuple[tuple[Turn, ...], ...]:
    """Split turns into exchanges, each from a message of the user up to the next one.

    A prompt that one agent gave to another, below it, does not begin an exchange. Turns of role
    `system` before the first message belong to the first exchange.
    """
    exchanges: list[list[Turn]] = []
    for turn in turns:
        is_nested = turn.agent is not None and "." in turn.agent
        if not exchanges or (
            turn.role == "user"
            and not is_nested
            and any(earlier.role != "system" for earlier in exchanges[-1])
        ):
            exchanges.append([])
        exchanges[-1].append(turn)
    return tuple(map(tuple, exchanges))
