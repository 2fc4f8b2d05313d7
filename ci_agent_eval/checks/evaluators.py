"""Evaluators of pydantic-evals as checks."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_evals.evaluators import (
    EvaluationReason,
    Evaluator,
    EvaluatorContext,
    EvaluatorOutput,
    GEval,
    LLMJudge,
    llm_as_a_judge,
)
from pydantic_evals.otel.span_tree import AttributeValue, SpanNode, SpanTree

from ci_agent_eval.checks.base import BaseCheck, format_value
from ci_agent_eval.checks.judge_questions import get_running_engine
from ci_agent_eval.checks.text import get_last_reply, get_user_texts
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.contract.trajectory import ToolCall, Turn
from ci_agent_eval.errors import AgentEvalError, InputError
from ci_agent_eval.recording.active_episode import get_active_episode

JudgeEvaluator = LLMJudge | GEval

_OUTPUT: TypeAdapter[EvaluatorOutput] = TypeAdapter(EvaluatorOutput)


class EvaluatorError(AgentEvalError):
    """Raised if an evaluator raises or gives no result: the episode is an infrastructure error."""


@dataclass(frozen=True, slots=True)
class EvaluatorCheck(BaseCheck):
    """An evaluator of pydantic-evals with the values of its context; see `from_evaluator`."""

    evaluator: Evaluator
    expected_output: Any = None
    inputs: Any = None
    output: Any = None
    metadata: Any = None
    threshold: float | None = None
    scale: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        low, _ = self._get_scale()
        if self.threshold is not None and self.threshold <= low:
            raise InputError(
                f"from_evaluator: threshold {self.threshold:g} is the bottom of the scale, which "
                f"everything reaches; give a number above {low:g}"
            )

    def assertions(
        self, episode: Episode
    ) -> tuple[Assertion, ...] | Awaitable[tuple[Assertion, ...]]:
        """Return an assertion for each result; an awaitable of them for an async evaluator.

        Raises EvaluatorError if the evaluator raises, and InputError for an empty result or a
        number outside the scale.
        """
        if isinstance(self.evaluator, JudgeEvaluator) and get_active_episode() is not None:
            return self._ask_judge(episode, self.evaluator)
        evaluator = self.evaluator
        has_async = type(evaluator).evaluate_async is not Evaluator.evaluate_async
        try:
            context = self.build_context(episode)
            found = (evaluator.evaluate_async if has_async else evaluator.evaluate)(context)
        except Exception as error:
            raise self._convert_error(error, episode) from error
        if inspect.isawaitable(found):
            return self._await_output(found, episode)
        return self._parse_output(found, episode)

    async def _await_output(
        self, awaitable: Awaitable[EvaluatorOutput], episode: Episode
    ) -> tuple[Assertion, ...]:
        try:
            found = await awaitable
        except Exception as error:
            raise self._convert_error(error, episode) from error
        return self._parse_output(found, episode)

    async def _ask_judge(self, episode: Episode, judge: JudgeEvaluator) -> tuple[Assertion, ...]:
        """Ask the judge's model through the episode's engine, which records and counts it."""
        base_model = judge.model or llm_as_a_judge._default_model  # noqa: SLF001 - it can only be set
        model = await get_running_engine(self._label).judge_model(base_model)
        judge = dataclasses.replace(judge, model=model)
        return await self._await_output(judge.evaluate_async(self.build_context(episode)), episode)

    def build_context(self, episode: Episode) -> EvaluatorContext[Any, Any, Any]:
        """Build the evaluator's context from an episode."""
        texts = get_user_texts(episode)
        messages = texts[0] if len(texts) == 1 else texts
        return EvaluatorContext(
            name=episode.scenario_id,
            inputs=messages if self.inputs is None else self.inputs,
            output=get_last_reply(episode) if self.output is None else self.output,
            expected_output=self.expected_output,
            metadata=dict(episode.metadata) if self.metadata is None else self.metadata,
            duration=_measure_seconds(episode),
            _span_tree=build_span_tree(episode),
            attributes={},
            metrics=compute_metrics(episode),
        )

    @property
    def _label(self) -> str:
        return str(self.evaluator.get_default_evaluation_name())

    def _convert_error(self, error: Exception, episode: Episode) -> AgentEvalError:
        if isinstance(error, InputError):
            return error
        untimed = (
            " (the agent's time was not measured)" if math.isnan(_measure_seconds(episode)) else ""
        )
        return EvaluatorError(f"evaluator {self._label}: {describe_error(error)}{untimed}")

    def _parse_output(self, output: object, episode: Episode) -> tuple[Assertion, ...]:
        """Convert an evaluator's output to assertions."""
        try:
            found = _OUTPUT.validate_python(output)
        except ValidationError as error:
            raise EvaluatorError(
                f"evaluator {self._label}: it returned {format_value(output)}, which is not a "
                "result"
            ) from error
        results = found if isinstance(found, Mapping) else {self._label: found}
        if not results:
            raise InputError(
                f"evaluator {self._label}: it returned nothing to check; give it what it compares "
                "with, such as from_evaluator(…, expected_output=…)"
            )
        return tuple(self._convert_result(key, value, episode) for key, value in results.items())

    def _convert_result(self, key: str, result: Any, episode: Episode) -> Assertion:
        value = result.value if isinstance(result, EvaluationReason) else result
        given = result.reason if isinstance(result, EvaluationReason) else None
        if isinstance(value, bool):
            seen = format_value(get_last_reply(episode) if self.output is None else self.output)
            reason = given or f"{'true' if value else 'false'} of {seen}"
            return self._build_assertion(key, value, reason)
        if isinstance(value, str):
            reason = f"{format_value(value)}{f': {given}' if given else ''}"
            return self._build_assertion(key, True, reason)
        return self._convert_number(key, value, given)

    def _convert_number(self, key: str, value: float, given: str | None) -> Assertion:
        """Convert a number. Raises InputError for a number outside the scale."""
        low, high = self._get_scale()
        if not math.isfinite(value) or not low <= value <= high:
            raise InputError(
                f"evaluator {self._label}: {key} is {value:g}, which is not from {low:g} to "
                f"{high:g}; give its scale, from_evaluator(…, scale=(lowest, highest))"
            )
        minimum = high if self.threshold is None else self.threshold
        reason = f"{value:g}, passes from {minimum:g}{f': {given}' if given else ''}"
        score = (value - low) / (high - low)
        threshold = None if self.threshold is None else (minimum - low) / (high - low)
        return self._build_assertion(
            key, value >= minimum, reason, score=score, threshold=threshold
        )

    def _get_scale(self) -> tuple[float, float]:
        if self.scale is not None:
            return self.scale
        return self.evaluator.score_range if isinstance(self.evaluator, GEval) else (0.0, 1.0)


def _measure_seconds(episode: Episode) -> float:
    """Return the agent's time; NaN if it was not measured, so that no limit passes."""
    if episode.duration_ms is not None:
        return episode.duration_ms / 1000
    measured = episode.trajectory.latencies_ms if episode.trajectory is not None else ()
    return math.fsum(measured) / 1000 if measured else math.nan


_EPOCH = datetime.fromtimestamp(0, UTC)
_SHORTEST = timedelta(microseconds=1)
"""Minimum duration of a span, so that spans sort in the order of their events."""

Attributes = dict[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class _SpanSource:
    """The values of one span."""

    name: str
    attributes: Attributes
    duration_ms: float | None
    failed: bool = False


def build_span_tree(episode: Episode) -> SpanTree:
    """Build the spans of an episode: its run, and below it turns and tool calls in order."""
    now = _EPOCH
    spans = []
    for number, step in enumerate(_list_span_sources(episode), start=2):
        end = now + max(timedelta(milliseconds=step.duration_ms or 0), _SHORTEST)
        spans.append(_build_span(step, number, now, end))
        now = end
    run = _SpanSource("invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, None)
    tree = SpanTree()
    tree.add_spans([_build_span(run, 1, _EPOCH, now), *spans])
    return tree


def compute_metrics(episode: Episode) -> dict[str, int | float]:
    """Return the metrics that pydantic-evals reads from spans; only measured ones."""
    trajectory = episode.trajectory
    turns = trajectory.agent_turns if trajectory is not None else ()
    found: dict[str, int | float] = {"requests": len(turns)}
    usages = [turn.tokens for turn in turns if turn.tokens is not None]
    if usages and len(usages) == len(turns):
        found["input_tokens"] = sum(usage.input for usage in usages)
        found["output_tokens"] = sum(usage.output for usage in usages)
    if trajectory is not None and trajectory.cost_usd is not None:
        found["cost"] = trajectory.cost_usd
    return found


def _build_span(step: _SpanSource, number: int, start: datetime, end: datetime) -> SpanNode:
    return SpanNode(
        name=step.name,
        trace_id=1,
        span_id=number,
        parent_span_id=None if number == 1 else 1,
        start_timestamp=start,
        end_timestamp=end,
        attributes=step.attributes,
        status="error" if step.failed else "unset",
    )


def _list_span_sources(episode: Episode) -> Iterator[_SpanSource]:
    """Yield the values of a span for each turn of the agent, and for each of its calls."""
    model = episode.model or "unknown"
    for turn in episode.trajectory.agent_turns if episode.trajectory else ():
        yield _SpanSource(f"chat {model}", _get_turn_attributes(turn, model), turn.latency_ms)
        for call in turn.tool_calls:
            attributes = _get_call_attributes(call)
            failed = call.error is not None
            yield _SpanSource(f"execute_tool {call.name}", attributes, call.duration_ms, failed)


def _get_turn_attributes(turn: Turn, model: str) -> Attributes:
    found: Attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    if turn.tokens is not None:
        found["gen_ai.usage.input_tokens"] = turn.tokens.input
        found["gen_ai.usage.output_tokens"] = turn.tokens.output
    if turn.cost_usd is not None:
        found["operation.cost"] = turn.cost_usd
    return found


def _get_call_attributes(call: ToolCall) -> Attributes:
    found: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.arguments": json.dumps({} if call.arguments is None else call.arguments),
    }
    if call.id is not None:
        found["gen_ai.tool.call.id"] = call.id
    if call.result is not None:
        found["gen_ai.tool.call.result"] = json.dumps(call.result)
    return found
