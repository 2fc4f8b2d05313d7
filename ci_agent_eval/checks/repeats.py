"""Calls an agent makes again: single ones, and sequences that go round."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ci_agent_eval.checks.base import Named, Texts, keep, share, texts, whole
from ci_agent_eval.checks.exchanges import calls
from ci_agent_eval.checks.shown import called, listed, times
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.contract.wording import pluralize


@dataclass(frozen=True, slots=True)
class RepeatedCalls(Named):
    """The agent makes at most so many calls that it made before, arguments included.

    A call after the same one failed, or was held back by steering, is a retry and no repeat.
    Tools in `ignore` may be called as often as one likes: what they tell changes. The score
    is the share of calls that are no repeats.
    """

    at_most: int = 0
    ignore: Texts = ()

    def __post_init__(self) -> None:
        whole("RepeatedCalls", "at_most", self.at_most)
        keep(self, ignore=texts("RepeatedCalls", "ignore", self.ignore))

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        made = [call for call in calls(episode) if call.name not in self.ignore]
        seen: dict[str, ToolCall] = {}
        repeats = []
        for call in made:
            before = seen.get(_same(call))
            if before is not None and not before.failed:
                repeats.append(called(call))
            seen[_same(call)] = call
        reason = (
            f"made again: {listed(repeats)}"
            if repeats
            else f"{pluralize(len(made), 'call')}, none again"
        )
        says = f"repeats calls at most {times(self.at_most)}" if self.at_most else "repeats no call"
        score = share(len(made) - len(repeats), len(made))
        passed = len(repeats) <= self.at_most
        return (self._assertion(says, passed, reason, score=score),)


@dataclass(frozen=True, slots=True)
class Loops(Named):
    """No sequence of calls is made more than `at_most` times in a row, arguments included.

    Sequences of up to `longest` calls are looked for. The score is the share of calls that
    are not beyond a sequence's first `at_most` rounds.
    """

    at_most: int = 2
    longest: int = 10

    def __post_init__(self) -> None:
        whole("Loops", "at_most", self.at_most, least=1)
        whole("Loops", "longest", self.longest, least=1)

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        made = calls(episode)
        keys = [_same(call) for call in made]
        worst: tuple[int, int, int] = (0, 0, 0)
        for length in range(1, self.longest + 1):
            rounds, start = _longest_run(keys, length)
            beyond = (rounds - self.at_most) * length
            if rounds > self.at_most and beyond > worst[0]:
                worst = (beyond, start, length)
        beyond, start, length = worst
        says = f"makes no sequence of calls more than {times(self.at_most)} in a row"
        reason = f"{pluralize(len(made), 'call')}, no loop"
        if beyond:
            rounds = self.at_most + beyond // length
            cycle = listed(map(called, made[start : start + length]))
            reason = f"{times(rounds)} in a row: {cycle}"
        score = share(len(made) - beyond, len(made))
        return (self._assertion(says, not beyond, reason, score=score),)


def _longest_run(keys: Sequence[str], length: int) -> tuple[int, int]:
    """Return the most whole rounds of a cycle of so many calls, and where they begin."""
    best, start, equal = (1, 0), 0, 0
    for at in range(length, len(keys)):
        if keys[at] == keys[at - length]:
            equal += 1
            best = max(best, (1 + equal // length, -(at - equal - length + 1)))
        else:
            equal = 0
    rounds, start = best
    return rounds, -start


def _same(call: ToolCall) -> str:
    """Return what two calls have in common when they are the same: name and arguments."""
    return json.dumps([call.name, call.arguments], sort_keys=True)
