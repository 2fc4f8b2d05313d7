"""Pairwise comparison: judges prefer the agent's text or another one, in both orders. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from ci_agent_eval.checks.formatting import format_text
from ci_agent_eval.checks.judge_questions import (
    JudgePreference,
    PreferenceQuestion,
    select_judged_text,
)
from ci_agent_eval.checks.panel import JudgedCheck
from ci_agent_eval.contract.episode import Assertion, Episode, JudgeVote, VotePosition
from ci_agent_eval.contract.fields import NonBlankText
from ci_agent_eval.contract.judge_votes import pair_votes, resolve_pair

_POSITIONS: tuple[VotePosition, VotePosition] = ("first", "second")


@dataclass(frozen=True, slots=True)
class PairwiseRubric(JudgedCheck):
    """Judges prefer the agent's text to another one, or find it as good.

    Each judge is asked twice, once in each order, because many prefer a position. A pair whose two
    answers contradict each other counts as a tie. The score is the mean of the answers: 1 for the
    agent's text, 0.5 for a tie, 0 for the other one.

    Raises JudgeError if a judge fails, refuses or answers nonsense.
    """

    rubric: NonBlankText
    """What makes a text better."""
    model: Any
    """A name (`openai:gpt-5-mini`), a Provider, a model of PydanticAI, or a list of them."""
    other: NonBlankText
    """The text to compare with, such as the reply of another version."""
    _: KW_ONLY
    requires: Literal["as_good", "better"] = "as_good"
    """`as_good`: at least as many wins as losses; `better`: more."""

    def __post_init__(self) -> None:
        JudgedCheck.__post_init__(self)
        self._set_models(self.model)

    async def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return whether the agent's text is preferred. Raises JudgeError."""
        judged = select_judged_text("PairwiseRubric", self.of, episode)

        def build(asked: tuple[Any, VotePosition]) -> PreferenceQuestion:
            model, position = asked
            texts = (judged.text, self.other) if position == "first" else (self.other, judged.text)
            return PreferenceQuestion(
                model=model,
                timeout_s=self.timeout_s,
                inputs=judged.inputs,
                rubric=self.rubric,
                first=texts[0],
                second=texts[1],
            )

        asked = [(model, position) for model in self.model for position in _POSITIONS]
        answers = await self._ask_judges(asked, build)
        positions = [position for _, position in asked for _ in range(self.repeats)]
        votes = [
            self._build_vote(answer, repeat, position)
            for (repeat, answer), position in zip(answers, positions, strict=True)
        ]
        return (self._build_result(votes),)

    def _build_vote(
        self, answer: JudgePreference, repeat: int, position: VotePosition
    ) -> JudgeVote:
        is_own = answer.preferred == position
        score = 0.5 if answer.preferred == "tie" else float(is_own)
        return JudgeVote(
            judge=answer.judge,
            passed=score == 1 or (score == 0.5 and self.requires == "as_good"),
            score=score,
            reason=answer.reason,
            repeat=repeat,
            position=position,
        )

    def _build_result(self, votes: Sequence[JudgeVote]) -> Assertion:
        results = [resolve_pair(pair) for pair in pair_votes(votes)]
        wins, losses = results.count("win"), results.count("loss")
        passed = wins > losses or (wins == losses and self.requires == "as_good")
        counts = f"preferred in {wins} of {len(results)} pairs, the other text in {losses}"
        changed = results.count("contradiction")
        order = f"; {changed} changed with the order" if changed else ""
        decisive = next((v for v in votes if v.score == float(wins > losses)), votes[0])
        reason = f"{counts}{order}; {decisive.judge}: {decisive.reason}"
        statement = f"preferred: {format_text(self.rubric)}"
        return self._build_voted(statement, votes, passed=passed, reason=reason)
