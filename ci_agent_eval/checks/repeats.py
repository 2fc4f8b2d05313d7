"""Calls an agent makes again: single ones, and sequences that go round."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ci_agent_eval.checks.base import (
    BaseCheck,
    Texts,
    compute_share,
    normalize_texts,
    require_whole_number,
    set_fields,
)
from ci_agent_eval.checks.exchanges import get_tool_calls
from ci_agent_eval.checks.formatting import format_call, format_list, format_times
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.contract.wording import pluralize


@dataclass(frozen=True, slots=True)
class RepeatedCalls(BaseCheck):
    """The agent makes at most so many calls that it made before, arguments included.

    A call after the same one failed, or was held back by steering, is a retry and no repeat.
    Tools in `ignore` may be called as often as one likes: what they tell changes. The score
    is the share of calls that are no repeats.
    """

    at_most: int = 0
    ignore: Texts = ()

    def __post_init__(self) -> None:
        require_whole_number("RepeatedCalls", "at_most", self.at_most)
        set_fields(self, ignore=normalize_texts("RepeatedCalls", "ignore", self.ignore))

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        made = [call for call in get_tool_calls(episode) if call.name not in self.ignore]
        seen: dict[str, ToolCall] = {}
        repeats = []
        for call in made:
            before = seen.get(_build_call_key(call))
            if before is not None and not before.has_failed:
                repeats.append(format_call(call))
            seen[_build_call_key(call)] = call
        reason = (
            f"made again: {format_list(repeats)}"
            if repeats
            else f"{pluralize(len(made), 'call')}, none again"
        )
        says = (
            f"repeats calls at most {format_times(self.at_most)}"
            if self.at_most
            else "repeats no call"
        )
        score = compute_share(len(made) - len(repeats), len(made))
        passed = len(repeats) <= self.at_most
        return (self._assertion(says, passed, reason, score=score),)


@dataclass(frozen=True, slots=True)
class Loops(BaseCheck):
    """No sequence of calls is made more than `at_most` times in a row, arguments included.

    Sequences of up to `longest` calls are looked for. The score is the share of calls that
    are not beyond a sequence's first `at_most` rounds.
    """

    at_most: int = 2
    longest: int = 10

    def __post_init__(self) -> None:
        require_whole_number("Loops", "at_most", self.at_most, least=1)
        require_whole_number("Loops", "longest", self.longest, least=1)

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        made = get_tool_calls(episode)
        keys = [_build_call_key(call) for call in made]
        worst: tuple[int, int, int] = (0, 0, 0)
        for length in range(1, self.longest + 1):
            rounds, start = _find_longest_run(keys, length)
            beyond = (rounds - self.at_most) * length
            if rounds > self.at_most and beyond > worst[0]:
                worst = (beyond, start, length)
        beyond, start, length = worst
        says = f"makes no sequence of calls more than {format_times(self.at_most)} in a row"
        reason = f"{pluralize(len(made), 'call')}, no loop"
        if beyond:
            rounds = self.at_most + beyond // length
            cycle = format_list(map(format_call, made[start : start + length]))
            reason = f"{format_times(rounds)} in a row: {cycle}"
        score = compute_share(len(made) - beyond, len(made))
        return (self._assertion(says, not beyond, reason, score=score),)


def _find_longest_run(keys: Sequence[str], length: int) -> tuple[int, int]:
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


def _build_call_key(call: ToolCall) -> str:
    """Return what two calls have in common when they are the same: name and arguments."""
    return json.dumps([call.name, call.arguments], sort_keys=True)
