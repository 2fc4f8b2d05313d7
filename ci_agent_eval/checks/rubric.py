"""Rubrics: checks that a judge model decides, through the running episode's engine. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ci_agent_eval.checks.base import BaseCheck
from ci_agent_eval.checks.formatting import format_text
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.fields import NonBlankText, Seconds, Share
from ci_agent_eval.errors import AgentEvalError, InputError
from ci_agent_eval.recording.active_episode import get_active_episode

ENGINE_FIXTURE = "aitest_run"
"""The fixture that holds an episode's engine and cassette."""


class JudgeError(AgentEvalError):
    """Raised if a judge gives no verdict: its model failed, refused, or answered nonsense.

    The episode is an infrastructure error, not an agent failure.
    """


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """A judge's verdict."""

    passed: bool
    score: float
    """0 to 1."""
    reason: str


RubricScope = Literal["reply", "conversation"]


@dataclass(frozen=True, slots=True)
class Rubric(BaseCheck):
    """The agent's text satisfies a rubric, as a model judges: `await check(Rubric("…", model=…))`.

    The running episode's engine asks the model: within rate limits, from its cassette, its
    tokens and cost counted as the judge's. `of` is the last reply (with the user's messages) or
    the whole conversation; `expected` is a reference answer. It passes by the judge's verdict,
    or with a `threshold` by the judge's score.

    Raises JudgeError if the judge fails, refuses or answers nonsense.
    """

    rubric: NonBlankText
    model: Any
    """A name (`openai:gpt-5-mini`), a Provider, or a model of PydanticAI."""
    of: RubricScope = "reply"
    expected: str | None = None
    threshold: Share | None = None
    timeout_s: Seconds | None = 60.0
    """Time limit; waiting for rate limits is not counted."""

    async def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return the judge's verdict. Raises JudgeError if there is none."""
        verdict = await get_running_engine("Rubric").judge(self, episode)
        passed = verdict.passed if self.threshold is None else verdict.score >= self.threshold
        statement = f"rubric: {format_text(self.rubric)}"
        return (self._build_assertion(statement, passed, verdict.reason, score=verdict.score),)


class JudgeLoop(Protocol):
    """The event loop of a process's engine."""

    @property
    def is_running(self) -> bool:
        """Whether the caller runs on this loop."""


class EngineFixture(Protocol):
    """The part of the fixture `aitest_run` that judges use."""

    @property
    def loop(self) -> JudgeLoop:
        """The event loop of the engine's session."""

    async def judge(self, rubric: Rubric, episode: Episode) -> JudgeVerdict:
        """Ask the rubric's model. Raises JudgeError and InputError."""

    async def judge_model(self, model: object) -> Any:
        """Return a judge's model, rate limited, replayed and counted. Raises InputError."""


def get_running_engine(owner: str) -> EngineFixture:
    """Return the engine fixture of the running episode. Raises InputError if there is none."""
    running = get_active_episode()
    if running is None or running.fixture is None:
        raise InputError(
            f"{owner}: no episode is running whose judge's cost it could be; "
            "await `check(...)` inside a test that is an episode"
        )
    engine: EngineFixture = running.fixture(ENGINE_FIXTURE)
    if not engine.loop.is_running:
        raise InputError(
            f"{owner}: a judge needs the event loop of this plugin; await it in an `async def` "
            "test, not in a thread or `asyncio.run`, and not on trio"
        )
    return engine
