"""A rubric as a check: a model says whether what the agent wrote keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from ci_agent_eval.checks.base import Named, one_of, threshold
from ci_agent_eval.checks.shown import cut
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.engine import fields

Judged = Literal["reply", "conversation"]


@dataclass(frozen=True, slots=True)
class Rubric(Named):
    """What the agent wrote keeps a rubric, says a model: `await check(Rubric("…", model=…))`.

    The model is asked by the running episode's engine: within rate limits, from its
    cassette, its tokens and cost counted as the judge's. `of` is the last reply (with the
    user's messages) or the whole conversation; `expected` is an answer to hold it against.
    It passes by the judge's verdict, or with a `threshold` by the judge's score.

    A judge that fails, refuses or answers nonsense raises JudgeError.
    """

    rubric: str
    model: Any
    """A name (`openai:gpt-5-mini`), a Provider, or a model of PydanticAI."""
    of: Judged = "reply"
    expected: str | None = None
    threshold: float | None = None
    timeout_s: float | None = 60.0
    """The longest it may take; waiting for rate limits is not counted."""

    def __post_init__(self) -> None:
        fields.text("Rubric", "rubric", self.rubric)
        one_of("Rubric", "of", self.of, get_args(Judged))
        if self.threshold is not None:
            threshold("Rubric", self.threshold)
        if self.timeout_s is not None:
            fields.seconds("Rubric", "timeout_s", self.timeout_s)

    async def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return the judge's verdict. Raises JudgeError where there is none."""
        from ci_agent_eval.engine.bench import bench_of_running  # noqa: PLC0415 - a light check
        from ci_agent_eval.engine.judge import judge  # noqa: PLC0415 - it brings pydantic-evals

        verdict = await judge(self, episode, bench_of_running("Rubric"))
        passed = verdict.passed if self.threshold is None else verdict.score >= self.threshold
        says = f"rubric: {cut(self.rubric)}"
        return (self._assertion(says, passed, verdict.reason, score=verdict.score),)
