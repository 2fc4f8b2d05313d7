"""Rubrics with several dimensions, each graded on its scale. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any

from pydantic import Field

from ci_agent_eval.checks.base import require_any
from ci_agent_eval.checks.judge_questions import (
    DimensionsQuestion,
    JudgeGrades,
    ScoringDimension,
    select_judged_text,
)
from ci_agent_eval.checks.panel import JudgedCheck
from ci_agent_eval.contract.episode import Assertion, Episode, JudgeVote
from ci_agent_eval.contract.fields import Share, tuple_of
from ci_agent_eval.errors import InputError

Dimensions = Annotated[
    Sequence[ScoringDimension],
    tuple_of(ScoringDimension),
    Field(min_length=1),
    "one or more ScoringDimensions",
]


@dataclass(frozen=True, slots=True)
class DimensionRubric(JudgedCheck):
    """Judges grade the agent's text for each dimension; an assertion for each, and the composite.

    A grade is from 1 to the dimension's `max_score`; the assertion's score is grade over
    `max_score`, the composite the weighted mean of these. Of several judges or `repeats` the mean
    grade counts. A dimension without a minimum never fails.

    Raises JudgeError if a judge fails, refuses, or leaves a dimension out.
    """

    dimensions: Dimensions
    model: Any
    """A name (`openai:gpt-5-mini`), a Provider, a model of PydanticAI, or a list of them."""
    _: KW_ONLY
    threshold: Share | None = None
    """Lowest composite score that passes; unset: it never fails."""
    minimum: Mapping[str, float] = field(default_factory=dict)
    """Lowest mean grade that passes, by the name of the dimension."""

    def __post_init__(self) -> None:
        JudgedCheck.__post_init__(self)
        self._set_models(self.model)
        require_any("DimensionRubric", self.threshold, self.minimum)
        validate_dimensions("DimensionRubric", self.dimensions)
        scales = {dimension.name: dimension.max_score for dimension in self.dimensions}
        for name, lowest in self.minimum.items():
            if name not in scales or not 1 < lowest <= scales[name]:
                raise InputError(
                    f"DimensionRubric.minimum[{name!r}]: must be a dimension's name, with a grade "
                    f"above 1 and up to its max_score, got {lowest!r}"
                )

    async def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return the assertions of the dimensions and the composite. Raises JudgeError."""
        judged = select_judged_text("DimensionRubric", self.of, episode)

        def build(model: Any) -> DimensionsQuestion:
            return DimensionsQuestion(
                model=model,
                timeout_s=self.timeout_s,
                inputs=judged.inputs,
                text=judged.text,
                dimensions=tuple(self.dimensions),
            )

        answers = await self._ask_judges(self.model, build)
        return (
            *(self._build_dimension(one, answers) for one in self.dimensions),
            self._build_composite(answers),
        )

    def _build_dimension(
        self, dimension: ScoringDimension, answers: Sequence[tuple[int, JudgeGrades]]
    ) -> Assertion:
        name, lowest = dimension.name, self.minimum.get(dimension.name)
        grades = [grades.scores[name] for _, grades in answers]
        mean = math.fsum(grades) / len(grades)
        votes = [
            JudgeVote(
                judge=answer.judge,
                passed=lowest is None or answer.scores[name] >= lowest,
                score=answer.scores[name] / dimension.max_score,
                reason=answer.reasons[name],
                repeat=repeat,
            )
            for repeat, answer in answers
        ]
        limit = "" if lowest is None else f", passes from {lowest:g}"
        return self._build_voted(
            f"grade: {name}",
            votes,
            passed=lowest is None or mean >= lowest,
            reason=f"{mean:g} of {dimension.max_score}{limit}; {votes[0].reason}",
        )

    def _build_composite(self, answers: Sequence[tuple[int, JudgeGrades]]) -> Assertion:
        lowest = self.threshold
        votes = []
        for repeat, answer in answers:
            score = compute_composite(self.dimensions, answer.scores)
            passed = lowest is None or score >= lowest
            vote = JudgeVote(
                judge=answer.judge,
                passed=passed,
                score=score,
                reason=answer.reason,
                repeat=repeat,
            )
            votes.append(vote)
        mean = math.fsum(vote.score for vote in votes) / len(votes)
        limit = "" if lowest is None else f", passes from {lowest:g}"
        names = ", ".join(dimension.name for dimension in self.dimensions)
        return self._build_voted(
            f"grades: {names}",
            votes,
            passed=lowest is None or mean >= lowest,
            reason=f"{mean:.3g}{limit}; {votes[0].reason}",
        )

    def _build_assertion(
        self, statement: str, passed: bool, reason: str, *, score: float | None = None
    ) -> Assertion:
        """Build an assertion; the check's name is a prefix, because there are several."""
        named = f"{self.name}: {statement}" if self.name else statement
        built = JudgedCheck._build_assertion(self, named, passed, reason, score=score)  # noqa: SLF001 - its base
        return built.model_copy(update={"name": named})


def validate_dimensions(owner: str, dimensions: Sequence[ScoringDimension]) -> None:
    """Raise InputError if two dimensions have the same name, or there is none."""
    names = [dimension.name for dimension in dimensions]
    if not names or len(set(names)) < len(names):
        raise InputError(f"{owner}: give it one or more dimensions with different names")


def compute_composite(dimensions: Sequence[ScoringDimension], scores: Mapping[str, int]) -> float:
    """Return the weighted mean of grade over `max_score`, above 0 and up to 1."""
    total = math.fsum(one.weight * scores[one.name] / one.max_score for one in dimensions)
    return total / math.fsum(one.weight for one in dimensions)
