"""Panels: the same question to several judges, or several times, and their votes. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import PositiveInt

from ci_agent_eval.checks.base import BaseCheck, set_fields
from ci_agent_eval.checks.judge_questions import (
    Answer,
    JudgedScope,
    JudgeQuestion,
    get_running_engine,
)
from ci_agent_eval.contract.episode import Assertion, JudgeVote
from ci_agent_eval.contract.fields import Seconds
from ci_agent_eval.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCheck(BaseCheck):
    """Options of the checks that judge models decide."""

    of: JudgedScope = "reply"
    """The judged text: the last reply (with the user's messages), or the whole conversation."""
    timeout_s: Seconds | None = 60.0
    """Time limit of each answer; waiting for rate limits is not counted."""
    repeats: PositiveInt = 1
    """Number of times that each judge is asked."""

    def _set_models(self, models: Any) -> None:
        """Normalize one judge or a list of judges to a tuple. Raises InputError."""
        listed = tuple(models) if isinstance(models, list | tuple) else (models,)
        if not listed:
            raise InputError(f"{type(self).__name__}.model: name at least one judge")
        set_fields(self, model=listed)

    async def _ask_judges(
        self, models: Sequence[Any], build: Callable[[Any], JudgeQuestion[Answer]]
    ) -> Sequence[tuple[int, Answer]]:
        """Ask each judge `repeats` times; return the answers with the number of the repeat.

        One after another: a recording answers equal requests in their order. Raises JudgeError
        if any judge has no answer.
        """
        engine = get_running_engine(type(self).__name__)
        return [
            (repeat, await engine.judge(build(model)))
            for model in models
            for repeat in range(1, self.repeats + 1)
        ]

    def _build_voted(
        self,
        statement: str,
        votes: Sequence[JudgeVote],
        *,
        passed: bool,
        reason: str,
        score: float | None = None,
        threshold: float | None = None,
    ) -> Assertion:
        """Build an assertion with the record of its votes; a single plain vote needs none."""
        mean = math.fsum(vote.score for vote in votes) / len(votes) if score is None else score
        built = self._build_assertion(statement, passed, reason, score=mean, threshold=threshold)
        has_record = len(votes) > 1
        return built.model_copy(update={"votes": tuple(votes)}) if has_record else built


def count_votes(votes: Sequence[JudgeVote], needed: int | None) -> tuple[bool, str]:
    """Return whether enough votes passed, and the reason; by default more than half must pass."""
    required = len(votes) // 2 + 1 if needed is None else needed
    passed = sum(vote.passed for vote in votes)
    has_passed = passed >= required
    if len(votes) == 1:
        return has_passed, str(votes[0].reason)
    spoken = next(_list_reasons(votes, has_passed), "")
    return has_passed, f"{passed} of {len(votes)} votes pass, {required} needed{spoken}"


def _list_reasons(votes: Sequence[JudgeVote], passed: bool) -> Iterator[str]:
    return (f"; {vote.judge}: {vote.reason}" for vote in votes if vote.passed == passed)
