"""Conversion of spans to a trajectory. Pure: the order of the spans does not matter.

A model response is a turn. A model call inside another (an instrumented client below an
instrumented model) is the same response and counts once. The turns of an agent that a tool
called are included with their tokens and cost, without its prompts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ci_agent_eval.contract.trajectory import ToolCall, Trajectory, Turn
from ci_agent_eval.engine.traces import spans as genai
from ci_agent_eval.engine.traces.indexed_messages import Message
from ci_agent_eval.engine.traces.spans import SpanLike


def trajectory_from_spans(spans: Iterable[SpanLike]) -> Trajectory:
    """Build the trajectory of the GenAI spans; other spans are ignored.

    A failed model call is not a turn. Contents that were not recorded are empty; missing
    tokens and cost are None.
    """
    tree = SpanTree(spans)
    builder = _TrajectoryBuilder()
    for span in tree.ordered:
        if tree.is_model_call(span):
            inside = {genai.get_operation(other) for other in tree.iterate_ancestors(span)}
            builder.add_model_call(span, is_inner=genai.TOOL_OPERATION in inside)
        elif genai.get_operation(span) == genai.TOOL_OPERATION:
            builder.add_tool_span(span)
    return Trajectory(turns=tuple(builder.turns))


class SpanTree:
    """Recorded spans in the order of their starts, with their ancestors."""

    def __init__(self, spans: Iterable[SpanLike]) -> None:
        self.ordered: Sequence[SpanLike] = sorted(spans, key=_get_sort_key)
        self.by_id = {get_span_id(span): span for span in self.ordered}

    def is_model_call(self, span: SpanLike) -> bool:
        """Return whether a span is a model call, and none of an inner client."""
        return genai.get_operation(span) in genai.CHAT_OPERATIONS and not any(
            genai.get_operation(other) in genai.CHAT_OPERATIONS
            for other in self.iterate_ancestors(span)
        )

    def iterate_ancestors(self, span: SpanLike) -> Iterator[SpanLike]:
        """Yield the recorded ancestors of a span, the parent first."""
        seen: set[int] = set()
        current: SpanLike | None = span
        while current is not None and current.parent is not None:
            number = int(current.parent.span_id)
            if number in seen:
                return
            seen.add(number)
            current = self.by_id.get(number)
            if current is not None:
                yield current


def _get_sort_key(span: SpanLike) -> tuple[int, int, int]:
    """Return the key that sorts by start; of simultaneous starts the longer span is first."""
    return (span.start_time or 0, -(span.end_time or 0), get_span_id(span))


def get_span_id(span: SpanLike) -> int:
    """Return the id of a span."""
    return int(span.context.span_id)


@dataclass
class _TrajectoryBuilder:
    """The turns so far."""

    turns: list[Turn] = field(default_factory=list)
    _open: list[tuple[int, int]] = field(default_factory=list)
    """Calls without a tool span or result: index of the turn, index in the turn."""
    _last_prompts: list[str] = field(default_factory=list)
    """Prompts of the last request, to skip repeated ones."""

    def add_model_call(self, span: SpanLike, *, is_inner: bool) -> None:
        """Add a model call: new prompts and results, and the response."""
        messages, responses = genai.get_input_messages(span), genai.get_output_messages(span)
        self._add_results(messages)
        if not is_inner:
            self._add_prompts(messages)
        usage = genai.get_tokens(span)
        if genai.get_error(span) is not None and not responses and usage is None:
            return
        calls = tuple(call for message in responses for call in genai.iterate_calls(message))
        self._open += [(len(self.turns), place) for place in range(len(calls))]
        self.turns.append(
            Turn(
                role="assistant",
                content="\n".join(text for text in map(genai.get_message_text, responses) if text),
                tool_calls=calls,
                latency_ms=genai.compute_latency_ms(span),
                tokens=usage,
                cost_usd=genai.get_cost_usd(span),
                finish_reason=genai.get_finish_reason(span),
            )
        )
        if not is_inner:
            self._last_prompts = []

    def add_tool_span(self, span: SpanLike) -> None:
        """Complete the call of a tool's span; a call without a request is added."""
        reported = genai.build_span_tool_call(span)
        place = self._find_open_call(reported)
        if place is None:
            self._append_call(reported)
            return
        self._open.remove(place)
        call = self._get_call(place)
        known = {"arguments": reported.arguments if call.arguments is None else call.arguments}
        self._replace_call(place, reported.model_copy(update={**known, "id": call.id}))

    def _add_prompts(self, messages: Sequence[Message]) -> None:
        """Add the prompts after the last model message; a repeated request adds none."""
        last = max((n for n, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
        new = [m for m in messages[last + 1 :] if m["role"] == "user"]
        texts = [text for text in map(genai.get_message_text, new) if text]
        if texts != self._last_prompts:
            self.turns += [Turn(role="user", content=text) for text in texts]
            self._last_prompts = texts

    def _add_results(self, messages: Sequence[Message]) -> None:
        """Fill in results of tools without a span, which ran elsewhere."""
        results = dict(result for message in messages for result in genai.iterate_results(message))
        for place in list(self._open):
            call = self._get_call(place)
            if call.id in results:
                self._open.remove(place)
                self._replace_call(place, call.model_copy(update={"result": results[call.id]}))

    def _find_open_call(self, reported: ToolCall) -> tuple[int, int] | None:
        """Find the call of a tool span: by id, or without an id by name."""
        fitting = [p for p in self._open if self._get_call(p).name == reported.name]
        if reported.id is not None:
            fitting = [p for p in fitting if self._get_call(p).id == reported.id]
            return fitting[-1] if fitting else None
        return fitting[0] if fitting else None

    def _append_call(self, call: ToolCall) -> None:
        if not self.turns or self.turns[-1].role != "assistant":
            self.turns.append(Turn(role="assistant"))
        last = self.turns[-1]
        self.turns[-1] = last.model_copy(update={"tool_calls": (*last.tool_calls, call)})

    def _get_call(self, place: tuple[int, int]) -> ToolCall:
        return self.turns[place[0]].tool_calls[place[1]]

    def _replace_call(self, place: tuple[int, int], call: ToolCall) -> None:
        turn = self.turns[place[0]]
        calls = [*turn.tool_calls]
        calls[place[1]] = call
        self.turns[place[0]] = turn.model_copy(update={"tool_calls": tuple(calls)})
