"""Questions to judge models and their answers, and the engine that asks them. Pure.

A question holds all texts that the judge sees. A judge without an answer raises JudgeError: it
is an infrastructure error, and no score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from ci_agent_eval.checks.base import format_call, format_text
from ci_agent_eval.checks.text import split_exchanges
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.fields import NonBlankText, validate_fields
from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.errors import AgentEvalError, InputError
from ci_agent_eval.recording.active_episode import get_active_episode

ENGINE_FIXTURE = "aitest_run"
"""The fixture that holds an episode's engine and cassette."""

JudgedScope = Literal["reply", "conversation"]
Answer = TypeVar("Answer")


class JudgeError(AgentEvalError):
    """Raised if a judge gives no verdict: its model failed, refused, or answered nonsense.

    The episode is an infrastructure error, not an agent failure.
    """


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """A judge's verdict on one text."""

    judge: str
    """Model of the judge."""
    passed: bool
    score: float
    """0 to 1."""
    reason: str


@dataclass(frozen=True, slots=True)
class JudgeGrades:
    """A judge's grade for each dimension of a rubric."""

    judge: str
    scores: Mapping[str, int]
    """By the name of the dimension, from 1 to its `max_score`."""
    reasons: Mapping[str, str]
    reason: str


@dataclass(frozen=True, slots=True)
class ScoringDimension:
    """A dimension of a rubric, which the judge grades from 1 to `max_score`."""

    name: NonBlankText
    description: NonBlankText
    max_score: int = 5
    weight: float = 1.0
    """Relative weight in the composite score."""

    def __post_init__(self) -> None:
        validate_fields(self)
        if self.max_score < 2 or self.weight <= 0:
            raise InputError(
                f"ScoringDimension {self.name!r}: max_score must be at least 2 and weight above 0"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeQuestion(Generic[Answer]):
    """A question to one judge, answered by an `Answer`."""

    model: Any
    """A name (`openai:gpt-5-mini`), a Provider, or a model of PydanticAI."""
    timeout_s: float | None = 60.0
    """Time limit; waiting for rate limits is not counted."""
    inputs: str | None = None
    """The user's messages; None: there are none, only a text is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeQuestion(JudgeQuestion[JudgeVerdict]):
    """Whether a rubric is true of a text."""

    rubric: str
    text: str
    expected: str | None = None
    """A reference answer."""
    is_by_score: bool = False
    """Whether the score decides, so that a verdict that contradicts it does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionsQuestion(JudgeQuestion[JudgeGrades]):
    """The grade of a text for each dimension."""

    dimensions: tuple[ScoringDimension, ...]
    text: str
    label: str = "text"
    """Word for the text, such as `implementation plan`."""
    context: str | None = None
    """Background that is not graded."""


@dataclass(frozen=True, slots=True)
class JudgedText:
    """The texts of an episode that a judge sees."""

    inputs: str
    """The user's messages."""
    text: str


def select_judged_text(owner: str, of: JudgedScope, episode: Episode) -> JudgedText:
    """Return the user's messages and the judged text. Raises InputError if it is missing."""
    exchanges = split_exchanges(episode)
    inputs = "\n\n".join(text for exchange in exchanges for text in exchange.user_texts)
    if not any(exchange.turns for exchange in exchanges):
        raise InputError(f"{owner}: the agent has not said anything yet; let it reply first")
    text = exchanges[-1].reply if of == "reply" else render_judged_conversation(episode)
    return JudgedText(inputs, text)


def render_judged_conversation(episode: Episode) -> str:
    """Render a conversation as text: messages and tool calls with their results."""
    lines: list[str] = []
    for exchange in split_exchanges(episode):
        lines += [f"user: {text}" for text in exchange.user_texts]
        for turn in exchange.turns:
            lines += [
                f"agent calls {format_call(c)} -> {format_text(str(_get_call_outcome(c)))}"
                for c in turn.tool_calls
            ]
            lines += [f"agent: {turn.content}"] if turn.content.strip() else []
    return "\n".join(lines)


def _get_call_outcome(call: ToolCall) -> object:
    return call.result if call.error is None else f"error: {call.error}"


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

    async def judge(self, question: JudgeQuestion[Answer]) -> Answer:
        """Ask the question's model. Raises JudgeError and InputError."""

    async def judge_model(self, model: object) -> Any:
        """Return a judge's model, rate limited, replayed and counted. Raises InputError."""


def get_running_engine(owner: str) -> EngineFixture:
    """Return the engine fixture of the running episode. Raises InputError if there is none."""
    running = get_active_episode()
    if running is None or running.fixture is None:
        raise InputError(
            f"{owner}: no episode is running; await `check(...)` inside an episode, so that the "
            "judge's cost can be recorded"
        )
    engine: EngineFixture = running.fixture(ENGINE_FIXTURE)
    if not engine.loop.is_running:
        raise InputError(
            f"{owner}: a judge needs the event loop of this plugin; await it in an `async def` "
            "test, not in a thread or `asyncio.run`, and not on trio"
        )
    return engine
