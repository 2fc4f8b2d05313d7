"""From spans to a trajectory. Pure: the same spans in any order give the same turns.

A model's answer is a turn. A call inside another (an instrumented client below an
instrumented model) is the same answer and counts once. The turns of an agent that a tool
called are among the others, as their tokens and cost are; its prompts are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.contract.trajectory import ToolCall, Trajectory, Turn
from ci_agent_eval.engine.traces import spans as said
from ci_agent_eval.engine.traces.spans import SpanLike


def trajectory_from_spans(spans: Iterable[SpanLike]) -> Trajectory:
    """Return what the GenAI spans among `spans` tell; other spans tell nothing.

    A model call that failed is no turn. Contents that were not recorded are empty; tokens
    and cost that were not are None.
    """
    ordered = sorted(spans, key=_get_sort_key)
    above = {_get_span_id(span): span for span in ordered}
    reading = _TrajectoryBuilder()
    for span in ordered:
        operation = said.get_operation(span)
        inside = {said.get_operation(other) for other in _iterate_ancestors(span, above)}
        if operation in said.CHAT_OPERATIONS and not inside & said.CHAT_OPERATIONS:
            reading.chat(span, is_inner=said.TOOL_OPERATION in inside)
        elif operation == said.TOOL_OPERATION:
            reading.tool(span)
    return Trajectory(turns=tuple(reading.turns))


def _get_sort_key(span: SpanLike) -> tuple[int, int, int]:
    """Sort by beginning; of two that begin at once the one that ends later holds the other."""
    return (span.start_time or 0, -(span.end_time or 0), _get_span_id(span))


def _get_span_id(span: SpanLike) -> int:
    return int(span.context.span_id)


def _iterate_ancestors(span: SpanLike, known: Mapping[int, SpanLike]) -> Iterator[SpanLike]:
    """Yield the spans around a span, its parent first; those not recorded are left out."""
    seen: set[int] = set()
    current: Any = span
    while current is not None and current.parent is not None:
        number = int(current.parent.span_id)
        if number in seen:
            return
        seen.add(number)
        current = known.get(number)
        if current is not None:
            yield current


@dataclass
class _TrajectoryBuilder:
    """The turns so far."""

    turns: list[Turn] = field(default_factory=list)
    _open: list[tuple[int, int]] = field(default_factory=list)
    """Calls that no span has told of yet: turn, and place in the turn."""
    _prompted: list[str] = field(default_factory=list)
    """The prompts of the last request, so that one that is repeated counts once."""

    def chat(self, span: SpanLike, *, is_inner: bool) -> None:
        """Take a model call: what is new of what it was asked, and what it answered."""
        asked, answered = said.get_input_messages(span), said.get_output_messages(span)
        self._results(asked)
        if not is_inner:
            self._prompts(asked)
        usage = said.get_tokens(span)
        if said.get_error(span) is not None and not answered and usage is None:
            return
        calls = tuple(call for message in answered for call in said.iterate_calls(message))
        self._open += [(len(self.turns), place) for place in range(len(calls))]
        self.turns.append(
            Turn(
                role="assistant",
                content="\n".join(text for text in map(said.get_text, answered) if text),
                tool_calls=calls,
                latency_ms=said.compute_latency_ms(span),
                tokens=usage,
                cost_usd=said.get_cost_usd(span),
                finish_reason=said.get_finish_reason(span),
            )
        )
        if not is_inner:
            self._prompted = []

    def tool(self, span: SpanLike) -> None:
        """Put what a tool's span tells where its call is; one nobody asked for is added."""
        told = said.build_tool_call(span)
        place = self._place(told)
        if place is None:
            self._add(told)
            return
        self._open.remove(place)
        asked = self._call(place)
        known = {"arguments": told.arguments if asked.arguments is None else asked.arguments}
        self._set(place, told.model_copy(update={**known, "id": asked.id}))

    def _prompts(self, asked: Sequence[said.Message]) -> None:
        """Add the prompts after the model's last word; a repeated request repeats them."""
        last = max((n for n, m in enumerate(asked) if m["role"] == "assistant"), default=-1)
        new = [m for m in asked[last + 1 :] if m["role"] == "user"]
        texts = [text for text in map(said.get_text, new) if text]
        if texts != self._prompted:
            self.turns += [Turn(role="user", content=text) for text in texts]
            self._prompted = texts

    def _results(self, asked: Sequence[said.Message]) -> None:
        """Fill in results that no span told: of tools that ran elsewhere."""
        told = dict(result for message in asked for result in said.iterate_results(message))
        for place in list(self._open):
            call = self._call(place)
            if call.id in told:
                self._open.remove(place)
                self._set(place, call.model_copy(update={"result": told[call.id]}))

    def _place(self, told: ToolCall) -> tuple[int, int] | None:
        """Find the call a span tells of: by its id, or by name where it has none."""
        fitting = [p for p in self._open if self._call(p).name == told.name]
        if told.id is not None:
            fitting = [p for p in fitting if self._call(p).id == told.id]
            return fitting[-1] if fitting else None
        return fitting[0] if fitting else None

    def _add(self, call: ToolCall) -> None:
        if not self.turns or self.turns[-1].role != "assistant":
            self.turns.append(Turn(role="assistant"))
        last = self.turns[-1]
        self.turns[-1] = last.model_copy(update={"tool_calls": (*last.tool_calls, call)})

    def _call(self, place: tuple[int, int]) -> ToolCall:
        return self.turns[place[0]].tool_calls[place[1]]

    def _set(self, place: tuple[int, int], call: ToolCall) -> None:
        turn = self.turns[place[0]]
        calls = [*turn.tool_calls]
        calls[place[1]] = call
        self.turns[place[0]] = turn.model_copy(update={"tool_calls": tuple(calls)})
