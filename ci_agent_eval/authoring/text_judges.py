"""`llm_assert` and `llm_score`: judges of plain texts, named as in pytest-skill-engineering."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ci_agent_eval.checks.judge_questions import (
    Answer,
    DimensionsQuestion,
    GradeQuestion,
    JudgeGrades,
    JudgeQuestion,
    ScoringDimension,
)
from ci_agent_eval.checks.rubric import compute_composite, validate_dimensions
from ci_agent_eval.contract.fields import NonBlankText, validate_value
from ci_agent_eval.contract.wording import shorten_text
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.active_episode import require_await

Result = TypeVar("Result")

MAX_PREVIEW = 200
"""Characters of the judged text that a result shows."""


class QuestionSender(Protocol):
    """Sends questions to judges, from plain code and from coroutines."""

    def send(self, question: JudgeQuestion[Answer]) -> Answer:
        """Ask and wait. Raises JudgeError and InputError."""

    def send_async(self, question: JudgeQuestion[Answer]) -> Awaitable[Answer]:
        """Ask without blocking the event loop. Raises JudgeError and InputError."""


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """Whether a text meets a criterion; true if it does."""

    passed: bool
    criterion: str
    reasoning: str
    content_preview: str

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        """Return the text of a failed assert."""
        verdict = "passed" if self.passed else "failed"
        return f"<{verdict}: {self.criterion!r} of {self.content_preview!r}: {self.reasoning}>"


@dataclass(frozen=True, slots=True)
class LLMAssert:
    """Judge whether a text meets a criterion: `assert llm_assert(text, "is a greeting")`."""

    model: Any
    sender: QuestionSender

    def __repr__(self) -> str:
        """Return a short text: pytest shows it with each failure."""
        return f"<llm_assert by {self.model}>"

    def __call__(self, content: str, criterion: str) -> CriterionResult:
        """Judge a text; inside a coroutine other episodes wait meanwhile. Raises JudgeError."""
        verdict = self.sender.send(self._build_question(content, criterion))
        return _build_result(content, criterion, verdict.passed, verdict.reason)

    def async_assert(self, content: str, criterion: str) -> Coroutine[Any, Any, CriterionResult]:
        """Judge a text without blocking other episodes. Raises JudgeError."""
        return require_await("llm_assert.async_assert", self._judge(content, criterion))

    async def _judge(self, content: str, criterion: str) -> CriterionResult:
        verdict = await self.sender.send_async(self._build_question(content, criterion))
        return _build_result(content, criterion, verdict.passed, verdict.reason)

    def _build_question(self, content: str, criterion: str) -> GradeQuestion:
        text = validate_value("llm_assert", "content", str, content)
        rubric = validate_value("llm_assert", "criterion", NonBlankText, criterion)
        return GradeQuestion(model=self.model, rubric=rubric, text=text)


def _build_result(content: str, criterion: str, passed: bool, reason: str) -> CriterionResult:
    return CriterionResult(passed, criterion, reason, shorten_text(content, MAX_PREVIEW))


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """The grades of a text."""

    scores: Mapping[str, int]
    """Grade by dimension, from 1 to its `max_score`."""
    total: int
    """Sum of the grades."""
    max_total: int
    """Highest possible sum."""
    weighted_score: float
    """Weighted mean of grade over `max_score`, above 0 and up to 1."""
    reasoning: str


@dataclass(frozen=True, slots=True)
class LLMScore:
    """Grade a text for each dimension of a rubric: `llm_score(text, [ScoringDimension(...)])`."""

    model: Any
    sender: QuestionSender

    def __repr__(self) -> str:
        """Return a short text: pytest shows it with each failure."""
        return f"<llm_score by {self.model}>"

    def __call__(
        self,
        content: str,
        rubric: Sequence[ScoringDimension],
        *,
        content_label: str = "content",
        context: str | None = None,
    ) -> ScoreResult:
        """Grade a text; inside a coroutine other episodes wait meanwhile. Raises JudgeError."""
        question = self._build_question(content, rubric, content_label, context)
        return _build_scores(rubric, self.sender.send(question))

    def async_score(
        self,
        content: str,
        rubric: Sequence[ScoringDimension],
        *,
        content_label: str = "content",
        context: str | None = None,
    ) -> Coroutine[Any, Any, ScoreResult]:
        """Grade a text without blocking other episodes. Raises JudgeError."""
        question = self._build_question(content, rubric, content_label, context)
        return require_await("llm_score.async_score", self._grade(rubric, question))

    async def _grade(
        self, rubric: Sequence[ScoringDimension], question: DimensionsQuestion
    ) -> ScoreResult:
        return _build_scores(rubric, await self.sender.send_async(question))

    def _build_question(
        self,
        content: str,
        rubric: Sequence[ScoringDimension],
        label: str,
        context: str | None,
    ) -> DimensionsQuestion:
        text = validate_value("llm_score", "content", str, content)
        validate_dimensions("llm_score", rubric)
        return DimensionsQuestion(
            model=self.model, dimensions=tuple(rubric), text=text, label=label, context=context
        )


def _build_scores(rubric: Sequence[ScoringDimension], found: JudgeGrades) -> ScoreResult:
    ordered = {dimension.name: found.scores[dimension.name] for dimension in rubric}
    return ScoreResult(
        ordered,
        sum(ordered.values()),
        sum(dimension.max_score for dimension in rubric),
        compute_composite(rubric, ordered),
        found.reason,
    )


def assert_score(
    result: ScoreResult,
    *,
    min_total: int | None = None,
    min_pct: float | None = None,
    min_dimensions: Mapping[str, int] | None = None,
) -> None:
    """Raise AssertionError with every minimum that a result misses.

    `min_pct` is of `weighted_score`, 0 to 1. Raises InputError without a minimum, and for an
    unknown dimension.
    """
    __tracebackhide__ = True
    minimums = dict(min_dimensions or {})
    if min_total is None and min_pct is None and not minimums:
        raise InputError("assert_score: it is given nothing to check; name at least one minimum")
    unknown = sorted(set(minimums) - set(result.scores))
    if unknown:
        raise InputError(f"assert_score: the result has no dimension {unknown[0]!r}")
    missed = [
        f"{name} is {result.scores[name]}, at least {least} is required"
        for name, least in minimums.items()
        if result.scores[name] < least
    ]
    if min_total is not None and result.total < min_total:
        missed.append(f"total is {result.total} of {result.max_total}, not {min_total}")
    if min_pct is not None and result.weighted_score < min_pct:
        share = math.floor(result.weighted_score * 1000) / 1000
        missed.append(f"weighted score is {share:g}, not {min_pct:g}")
    if missed:
        raise AssertionError(f"{'; '.join(missed)}: {result.reasoning}")
