"""Rubrics: checks that judge models decide, through the running episode's engine. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any

from pydantic import Field, PositiveInt

from ci_agent_eval.checks.base import BaseCheck, format_text, require_any, set_fields
from ci_agent_eval.checks.judge_questions import (
    Answer,
    DimensionsQuestion,
    GradeQuestion,
    JudgedScope,
    JudgeGrades,
    JudgeQuestion,
    JudgeVerdict,
    ScoringDimension,
    get_running_engine,
    select_judged_text,
)
from ci_agent_eval.contract.episode import Assertion, Episode, JudgeVote
from ci_agent_eval.contract.fields import NonBlankText, Seconds, Share, tuple_of
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


Dimensions = Annotated[
    Sequence[ScoringDimension],
    tuple_of(ScoringDimension),
    Field(min_length=1),
    "one or more ScoringDimensions",
]


@dataclass(frozen=True, slots=True)
class Rubric(JudgedCheck):
    """The agent's text satisfies a rubric, as a model judges: `await check(Rubric("…", model=…))`.

    The running episode's engine asks the model: within rate limits, from its cassette, its
    tokens and cost counted as the judge's. `expected` is a reference answer. It passes by the
    judge's verdict, or with a `threshold` by the judge's score. Several models, or `repeats`, make
    a panel: more than half of its votes must pass, or `votes_needed`; its score is the mean.

    Raises JudgeError if a judge fails, refuses or answers nonsense.
    """

    rubric: NonBlankText
    model: Any
    """A name (`openai:gpt-5-mini`), a Provider, a model of PydanticAI, or a list of them."""
    _: KW_ONLY
    expected: str | None = None
    threshold: Share | None = None
    votes_needed: PositiveInt | None = None
    """Votes that must pass; unset: more than half."""

    def __post_init__(self) -> None:
        JudgedCheck.__post_init__(self)
        self._set_models(self.model)
        votes = len(self.model) * self.repeats
        if self.votes_needed is not None and self.votes_needed > votes:
            raise InputError(
                f"Rubric.votes_needed: there are {votes} votes, so {self.votes_needed} never pass"
            )

    async def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return the panel's verdict. Raises JudgeError if a judge has none."""
        judged = select_judged_text("Rubric", self.of, episode)

        def build(model: Any) -> GradeQuestion:
            return GradeQuestion(
                model=model,
                timeout_s=self.timeout_s,
                inputs=judged.inputs,
                text=judged.text,
                rubric=self.rubric,
                expected=self.expected,
                is_by_score=self.threshold is not None,
            )

        answers = await self._ask_judges(self.model, build)
        votes = [self._build_vote(verdict, repeat) for repeat, verdict in answers]
        passed, reason = count_votes(votes, self.votes_needed)
        statement = f"rubric: {format_text(self.rubric)}"
        voted = self._build_voted(
            statement, votes, passed=passed, reason=reason, threshold=self.threshold
        )
        return (voted,)

    def _build_vote(self, verdict: JudgeVerdict, repeat: int) -> JudgeVote:
        passed = verdict.passed if self.threshold is None else verdict.score >= self.threshold
        return JudgeVote(
            judge=verdict.judge,
            passed=passed,
            score=verdict.score,
            reason=verdict.reason,
            repeat=repeat,
        )


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
            threshold=None if lowest is None else lowest / dimension.max_score,
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
            threshold=lowest,
        )

    def _build_assertion(
        self, statement: str, passed: bool, reason: str, **figures: float | None
    ) -> Assertion:
        """Build an assertion; the check's name is a prefix, because there are several."""
        named = f"{self.name}: {statement}" if self.name else statement
        built = JudgedCheck._build_assertion(self, named, passed, reason, **figures)  # noqa: SLF001 - its base
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
