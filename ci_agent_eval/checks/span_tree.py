"""A trajectory as a tree of spans for pydantic-evals' agentic evaluators.

Names and attributes follow PydanticAI's instrumentation (version 3) and OpenTelemetry's
conventions for generative AI: `chat` for each turn of the agent, and `execute_tool` for each
call. Times start at the epoch and add the measured latencies, so that the same episode gives
the same spans.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic_evals.otel.span_tree import AttributeValue, SpanNode, SpanTree

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.trajectory import ToolCall, Turn

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
