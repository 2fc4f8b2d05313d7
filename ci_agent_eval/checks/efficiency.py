"""Checks of efficiency: the number of steps, and calls after the answer is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import InstanceOf, NonNegativeInt, PlainValidator, PositiveInt

from ci_agent_eval.checks.base import BaseCheck, compute_share, set_fields
from ci_agent_eval.checks.exchanges import split_exchanges
from ci_agent_eval.checks.formatting import format_call, format_list
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.fields import (
    NonNegativeNumber,
    compile_pattern,
    validate_fields,
    validate_value,
)
from ci_agent_eval.contract.trajectory import ToolCall, Trajectory
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
