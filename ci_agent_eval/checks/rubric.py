"""Rubrics: checks that judge models decide, through the running episode's engine. Pure."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from pydantic import PositiveInt

from ci_agent_eval.checks.formatting import format_text
from ci_agent_eval.checks.judge_questions import GradeQuestion, JudgeVerdict, select_judged_text
from ci_agent_eval.checks.panel import JudgedCheck, count_votes
from ci_agent_eval.contract.episode import Assertion, Episode, JudgeVote
from ci_agent_eval.contract.fields import NonBlankText, Share
from ci_agent_eval.errors import InputError


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
        return (self._build_voted(statement, votes, passed=passed, reason=reason),)

    def _build_vote(self, verdict: JudgeVerdict, repeat: int) -> JudgeVote:
        passed = verdict.passed if self.threshold is None else verdict.score >= self.threshold
        return JudgeVote(
            judge=verdict.judge,
            passed=passed,
            score=verdict.score,
            reason=verdict.reason,
            repeat=repeat,
        )
