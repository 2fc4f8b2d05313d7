"""Checks of efficiency: the number of steps, and calls after the answer is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import InstanceOf, NonNegativeInt, PlainValidator, PositiveInt

from ci_agent_eval.checks.base import (
    BaseCheck,
    compute_share,
    format_call,
    format_list,
    format_times,
    format_value,
    set_fields,
)
from ci_agent_eval.checks.text import get_tool_calls, get_turns, split_exchanges
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.fields import (
    NonNegativeNumber,
    Pattern,
    Texts,
    compile_pattern,
    validate_fields,
    validate_value,
)
from ci_agent_eval.contract.trajectory import ToolCall, Trajectory, Turn
from ci_agent_eval.contract.wording import pluralize

StepKind = Literal["tool_calls", "turns"]


@dataclass(frozen=True, slots=True)
class StepRatio(BaseCheck):
    """The agent takes at most `at_most` times the reference's steps.

    The reference is a number of steps, or a trajectory whose steps are counted; a step is
    a tool call, or with `of="turns"` a turn of the agent. The score is the reference's steps
    divided by the agent's, at most 1. An agent without any step fails.
    """

    reference: PositiveInt | InstanceOf[Trajectory] | InstanceOf[Episode]
    at_most: NonNegativeNumber = 1.0
    of: StepKind = "tool_calls"

    def __post_init__(self) -> None:
        validate_fields(self)
        if isinstance(self.reference, Episode):
            set_fields(self, reference=self.reference.trajectory or Trajectory())
        if isinstance(self.reference, Trajectory):
            set_fields(self, reference=_count_steps(self.reference, self.of))
        validate_value("StepRatio", "reference", PositiveInt, self.reference)

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        assert isinstance(self.reference, int)  # noqa: S101 - `__post_init__` counted them
        taken = _count_steps(episode.trajectory or Trajectory(), self.of)
        unit = "tool call" if self.of == "tool_calls" else "turn"
        limit = f"at most {self.at_most:g} times" if self.at_most != 1 else "no more than"
        statement = f"takes {limit} the reference's {pluralize(self.reference, unit)}"
        if not taken:
            reason = f"it took no {unit} at all"
            return (self._build_assertion(statement, False, reason, score=0.0),)
        reason = f"it took {pluralize(taken, unit)}, {taken / self.reference:.3g} times as many"
        passed = taken <= self.reference * self.at_most
        score = min(1.0, compute_share(self.reference, taken))
        return (self._build_assertion(statement, passed, reason, score=score),)


def _count_steps(trajectory: Trajectory, of: StepKind) -> int:
    if of == "turns":
        return len(trajectory.agent_turns)
    return sum(1 for _ in trajectory.tool_calls())


def _parse_answer(answer: object) -> object:
    if answer == "":
        raise ValueError("must be a text that is not empty")
    return answer if isinstance(answer, str) or callable(answer) else compile_pattern(answer)


@dataclass(frozen=True, slots=True)
class CallsAfterAnswer(BaseCheck):
    """The agent makes at most `at_most` calls after a tool has returned the answer.

    `answer` is a text, a compiled regular expression, or a function of a tool's result. It is
    known from the first result that contains it; later calls count until the user's next
    message. If no tool returns the answer, the check fails. The score is the share of calls
    up to the answer.
    """

    answer: Annotated[
        str | re.Pattern[str] | Callable[[Any], object], PlainValidator(_parse_answer)
    ]
    at_most: NonNegativeInt = 0

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        limit = f"at most {pluralize(self.at_most, 'call')}" if self.at_most else "no call"
        statement = f"makes {limit} after the answer is known"
        for exchange in split_exchanges(episode):
            calls = exchange.calls
            known = next((i for i, call in enumerate(calls) if self._has_answer(call)), None)
            if known is not None:
                return (self._assert_limit(statement, calls, known),)
        return (self._build_assertion(statement, False, "no tool told the answer", score=0.0),)

    def _assert_limit(self, statement: str, calls: Sequence[ToolCall], known: int) -> Assertion:
        later = calls[known + 1 :]
        listed = format_list(map(format_call, later)) or "none"
        reason = f"{format_call(calls[known])} told it; after it: {listed}"
        score = compute_share(len(calls) - len(later), len(calls))
        return self._build_assertion(statement, len(later) <= self.at_most, reason, score=score)

    def _has_answer(self, call: ToolCall) -> bool:
        if call.has_failed or call.result is None:
            return False
        if callable(self.answer):
            return bool(self.answer(call.result))
        result_text = call.result if isinstance(call.result, str) else json.dumps(call.result)
        if isinstance(self.answer, str):
            return self.answer in result_text
        return self.answer.search(result_text) is not None


SAYS_SO = re.compile(
    r"\b(sorry|apologi[sz]e|unfortunately|unable|fail(ed|s|ure)?|errors?|problems?|unavailable"
    r"|can(['\N{RIGHT SINGLE QUOTATION MARK}]t|not)|could(n['\N{RIGHT SINGLE QUOTATION MARK}]t"
    r"| not)|did(n['\N{RIGHT SINGLE QUOTATION MARK}]t| not) work|not (found|possible))\b",
    re.IGNORECASE,
)
"""English phrases by which an agent reports a failure."""


@dataclass(frozen=True, slots=True)
class ErrorRecovery(BaseCheck):
    """After each tool error, the agent calls the tool again with success, or reports the error.

    `says_so` is the pattern of a report. `tools` limits the check to some tools. The score is
    the share of errors that were recovered or reported.
    """

    tools: Texts = ()
    says_so: Pattern = SAYS_SO

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        failed = list(self._find_errors(episode))
        unrecovered = [
            f"{format_call(call)}: {format_value(call.error)}" for call, good in failed if not good
        ]
        reason = "no tool reported an error"
        if failed:
            reason = f"made good: {pluralize(len(failed), 'error')}"
        if unrecovered:
            reason = f"never made good, nor told: {format_list(unrecovered)}"
        score = compute_share(len(failed) - len(unrecovered), len(failed))
        statement = "recovers from errors of tools"
        return (self._build_assertion(statement, not unrecovered, reason, score=score),)

    def _find_errors(self, episode: Episode) -> Iterator[tuple[ToolCall, bool]]:
        """Yield each failed call, and whether it was recovered or reported."""
        turns = get_turns(episode)
        for index, turn in enumerate(turns):
            for number, call in enumerate(turn.tool_calls, 1):
                if call.error is None or (self.tools and call.name not in self.tools):
                    continue
                later = (
                    *turn.tool_calls[number:],
                    *(c for t in turns[index + 1 :] for c in t.tool_calls),
                )
                worked = any(c.name == call.name and not c.has_failed for c in later)
                yield call, worked or self._is_reported(turns[index:])

    def _is_reported(self, since: Sequence[Turn]) -> bool:
        """Return whether the agent reports the failure, from the turn of the error on."""
        assert isinstance(self.says_so, re.Pattern)  # noqa: S101 - its validation compiled it
        return any(t.role == "assistant" and self.says_so.search(t.content) for t in since)


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
