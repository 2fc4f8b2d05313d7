"""Checks for repeated calls: single calls, and sequences in a loop."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import NonNegativeInt, PositiveInt

from ci_agent_eval.checks.base import BaseCheck, compute_share
from ci_agent_eval.checks.exchanges import get_tool_calls
from ci_agent_eval.checks.formatting import format_call, format_list, format_times
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.fields import Texts
from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.contract.wording import pluralize


@dataclass(frozen=True, slots=True)
class RepeatedCalls(BaseCheck):
    """The agent repeats at most `at_most` calls (same tool, same arguments).

    A call after the same call failed, or was blocked by steering, is a retry and no repeat.
    `ignore` lists tools that may be repeated, for example because their results change. The
    score is the share of calls that are no repeats.
    """

    at_most: NonNegativeInt = 0
    ignore: Texts = ()

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        calls = [call for call in get_tool_calls(episode) if call.name not in self.ignore]
        seen: dict[str, ToolCall] = {}
        repeats = []
        for call in calls:
            before = seen.get(_build_call_key(call))
            if before is not None and not before.has_failed:
                repeats.append(format_call(call))
            seen[_build_call_key(call)] = call
        none_again = f"{pluralize(len(calls), 'call')}, none again"
        reason = f"made again: {format_list(repeats)}" if repeats else none_again
        limit = f"calls at most {format_times(self.at_most)}" if self.at_most else "no call"
        statement = f"repeats {limit}"
        score = compute_share(len(calls) - len(repeats), len(calls))
        passed = len(repeats) <= self.at_most
        return (self._build_assertion(statement, passed, reason, score=score),)


@dataclass(frozen=True, slots=True)
class Loops(BaseCheck):
    """No sequence of calls is made more than `at_most` times in a row, arguments included.

    Sequences of up to `longest` calls are searched. The score is the share of calls that are
    not in excess of a sequence's first `at_most` rounds.
    """

    at_most: PositiveInt = 2
    longest: PositiveInt = 10

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        calls = get_tool_calls(episode)
        keys = [_build_call_key(call) for call in calls]
        worst: tuple[int, int, int] = (0, 0, 0)
        for length in range(1, self.longest + 1):
            rounds, start = _find_longest_run(keys, length)
            excess = (rounds - self.at_most) * length
            if rounds > self.at_most and excess > worst[0]:
                worst = (excess, start, length)
        excess, start, length = worst
        statement = f"makes no sequence of calls more than {format_times(self.at_most)} in a row"
        reason = f"{pluralize(len(calls), 'call')}, no loop"
        if excess:
            rounds = self.at_most + excess // length
            cycle = format_list(map(format_call, calls[start : start + length]))
            reason = f"{format_times(rounds)} in a row: {cycle}"
        score = compute_share(len(calls) - excess, len(calls))
        return (self._build_assertion(statement, not excess, reason, score=score),)


def _find_longest_run(keys: Sequence[str], length: int) -> tuple[int, int]:
    """Return the most complete rounds of a cycle of `length` calls, and their start index."""
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
    """Return a text that is equal for calls with the same name and arguments."""
    return json.dumps([call.name, call.arguments], sort_keys=True)
