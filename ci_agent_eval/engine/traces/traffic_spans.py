"""Recorded model calls completed by spans of the same run. Pure.

Figures and texts of the traffic are kept. Spans add the durations and results of tools that
the traffic does not show, the names of agents, and their structure if the traffic shows only one.
Usage on spans of agents is never read: it sums that of their model calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ci_agent_eval.contract.trajectory import ToolCall, TrajectoryAgent, Turn
from ci_agent_eval.engine.traces import spans as genai
from ci_agent_eval.engine.traces.spans import SpanLike
from ci_agent_eval.engine.traces.trajectory import SpanTree, get_span_id
from ci_agent_eval.model_traffic.conversations import find_usable_answer
from ci_agent_eval.model_traffic.messages import ModelAnswer
from ci_agent_eval.model_traffic.recorder import ModelCall
from ci_agent_eval.model_traffic.trajectory import (
    MAX_NAME_CHARACTERS,
    TrafficTrajectory,
    TrafficTurn,
    limit_json,
    limit_text,
)


@dataclass(frozen=True, slots=True)
class CompletedTraffic:
    """The trajectory of model calls, completed by spans."""

    trajectory: TrafficTrajectory
    unmatched: int
    """Model calls that only spans show."""


def complete_traffic(
    found: TrafficTrajectory,
    calls: Sequence[ModelCall],
    spans: Sequence[SpanLike],
    enclosed: Mapping[int, range],
) -> CompletedTraffic:
    """Complete the trajectory of `calls` by the spans of the same run.

    `enclosed` holds the numbers of the calls that began while a span was open, by its id.
    """
    tree = SpanTree(spans)
    matched, unmatched = _match_calls(tree, calls, enclosed)
    turns = _add_tool_spans(found.turns, tree, enclosed)
    turns, agents = _add_agents(turns, found.agents, tree, matched)
    return CompletedTraffic(TrafficTrajectory(turns, agents), unmatched)


def _match_calls(
    tree: SpanTree, calls: Sequence[ModelCall], enclosed: Mapping[int, range]
) -> tuple[dict[int, SpanLike], int]:
    """Return the span of each call, by its number, and how many spans belong to no call.

    A span belongs to the calls during which it, or a span in it, was current; else to the call with
    its response id; else to the first call that began while it was open and has its figures.
    """
    matched: dict[int, SpanLike] = {}
    for call in calls:
        if (span := _find_current_span(tree, call)) is not None:
            matched[call.number] = span
    taken = {get_span_id(span) for span in matched.values()}
    left = [s for s in tree.ordered if tree.is_model_call(s) and get_span_id(s) not in taken]
    unmatched = 0
    for span in left:
        fitting = [call for call in calls if call.number not in matched]
        same_id = [call for call in fitting if _has_response_id(call, span)]
        during = [call for call in fitting if call.number in enclosed.get(get_span_id(span), ())]
        candidates = same_id if len(same_id) == 1 else [c for c in during if _agrees(c, span)]
        if candidates:
            matched[candidates[0].number] = span
        else:
            unmatched += 1
    return matched, unmatched


def _find_current_span(tree: SpanTree, call: ModelCall) -> SpanLike | None:
    """Return the model call's span that was current, or around the current one."""
    current = None if call.span_id is None else tree.by_id.get(int(call.span_id, 16))
    if current is None:
        return None
    around = [current, *tree.iterate_ancestors(current)]
    return next((span for span in around if tree.is_model_call(span)), None)


def _has_response_id(call: ModelCall, span: SpanLike) -> bool:
    answer, known = call.answer, genai.get_response_id(span)
    return answer is not None and known is not None and answer.id == known


def _agrees(call: ModelCall, span: SpanLike) -> bool:
    """Return whether model, tokens and tool calls of a span are those of a call, where known."""
    answer = find_usable_answer(call)
    if answer is None:
        return genai.get_error(span) is not None
    request = call.request
    models = {answer.model, None if request is None else request.model}
    tokens, model = genai.get_tokens(span), genai.get_model(span)
    if model is not None and None not in models and model not in models:
        return False
    if tokens is not None and answer.tokens is not None:
        used = answer.tokens
        if (tokens.input, tokens.output) != (used.input, used.output):
            return False
    return _have_same_tool_calls(answer, span)


def _have_same_tool_calls(answer: ModelAnswer, span: SpanLike) -> bool:
    messages = genai.get_output_messages(span)
    known = [call.id for message in messages for call in genai.iterate_calls(message)]
    return not known or None in known or known == [call.id for call in answer.tool_calls]


def _add_tool_spans(
    turns: Sequence[TrafficTurn], tree: SpanTree, enclosed: Mapping[int, range]
) -> tuple[TrafficTurn, ...]:
    """Add durations, unseen results and errors of the tools' spans to the calls in turns."""
    completed = list(turns)
    done: set[tuple[int, int]] = set()
    for span in tree.ordered:
        if genai.get_operation(span) != genai.TOOL_OPERATION:
            continue
        before = enclosed.get(get_span_id(span), range(0)).start - 1
        tool = genai.build_span_tool_call(span)
        place = _find_tool_call(completed, tool, before, done)
        if place is not None:
            done.add(place)
            completed[place[0]] = _complete_call(completed[place[0]], place[1], tool)
    return tuple(completed)


def _find_tool_call(
    turns: Sequence[TrafficTurn], tool: ToolCall, before: int, done: set[tuple[int, int]]
) -> tuple[int, int] | None:
    """Find the call of a tool's span among the answers up to the call number `before`.

    Without an id it is the first call with the same name and arguments, or with the same name.
    """
    places = [
        (row, place)
        for row, one in enumerate(turns)
        if one.call_number <= before
        for place, call in enumerate(one.turn.tool_calls)
        if call.name == tool.name and (row, place) not in done
    ]
    calls = {place: turns[place[0]].turn.tool_calls[place[1]] for place in places}
    if tool.id is not None:
        return next((place for place in places if calls[place].id == tool.id), None)
    same = [place for place in places if calls[place].arguments == tool.arguments]
    return next(iter(same or places), None)


def _complete_call(one: TrafficTurn, place: int, tool: ToolCall) -> TrafficTurn:
    calls = list(one.turn.tool_calls)
    calls[place] = calls[place].model_copy(update=_find_additions(calls[place], tool))
    return replace(one, turn=one.turn.model_copy(update={"tool_calls": tuple(calls)}))


def _find_additions(call: ToolCall, tool: ToolCall) -> dict[str, Any]:
    """Return the fields that a tool's span adds to its call; the model's text is kept."""
    added: dict[str, Any] = {"duration_ms": tool.duration_ms}
    if tool.error is not None and call.error is None:
        seen = call.result
        text = seen if isinstance(seen, str) else json.dumps(seen, sort_keys=True)
        error = tool.error if seen is None else text
        return {**added, "error": limit_text(error), "result": None, "result_unseen": False}
    if call.result_unseen and tool.result is not None:
        return {**added, "result": limit_json(tool.result), "result_unseen": False}
    return added


def _add_agents(
    turns: tuple[TrafficTurn, ...],
    known: tuple[TrajectoryAgent, ...],
    tree: SpanTree,
    matched: Mapping[int, SpanLike],
) -> tuple[tuple[TrafficTurn, ...], tuple[TrajectoryAgent, ...]]:
    """Name the known agents by their spans; without any, identify the agents by their spans."""
    owners = {number: _AgentSpan.find(tree, span) for number, span in matched.items()}
    named = {number: owner for number, owner in owners.items() if owner is not None}
    if known:
        return turns, tuple(_name_agent(agent, turns, named) for agent in known)
    numbers = {one.call_number for one in turns}
    if not numbers <= named.keys() or len({one.key for one in named.values()}) < 2:
        return turns, known
    agents = _AgentList()
    for number in sorted(numbers):
        agents.add(named[number], number)
    found = tuple(
        replace(one, turn=_set_agent(one.turn, agents.by_call[one.call_number])) for one in turns
    )
    return found, tuple(agents.by_key.values())


def _set_agent(turn: Turn, agent: TrajectoryAgent) -> Turn:
    return turn.model_copy(update={"agent": agent.id})


@dataclass(frozen=True, slots=True)
class _AgentSpan:
    """An agent by its span: its name, and the agents and tools around it."""

    name: str
    parent: _AgentSpan | None
    """The agent in whose span it runs."""

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the agents around it and its own."""
        return (self.name,) if self.parent is None else (*self.parent.key, self.name)

    @classmethod
    def find(cls, tree: SpanTree, span: SpanLike) -> _AgentSpan | None:
        """Return the agent of a span; None if no span around it names one."""
        names = [
            name
            for other in tree.iterate_ancestors(span)
            if genai.get_operation(other) == genai.AGENT_OPERATION
            and (name := genai.get_agent_name(other)) is not None
        ]
        agent = None
        for name in reversed(names):
            # Instrumentations may write two spans for one agent.
            if agent is None or agent.name != name:
                agent = cls(limit_text(name, MAX_NAME_CHARACTERS), agent)
        return agent


@dataclass
class _AgentList:
    """The agents in the order of their first calls."""

    by_key: dict[tuple[str, ...], TrajectoryAgent] = field(default_factory=dict)
    by_call: dict[int, TrajectoryAgent] = field(default_factory=dict)
    _last: TrajectoryAgent | None = None

    def add(self, span: _AgentSpan, call_number: int) -> None:
        """Add the agent of a call, which follows the calls so far."""
        self._last = self.by_call[call_number] = self._find(span)

    def _find(self, span: _AgentSpan) -> TrajectoryAgent:
        if span.key in self.by_key:
            return self.by_key[span.key]
        around = span.parent
        parent = self._last if around is None else self._find(around)
        children = sum(
            agent.parent == (None if parent is None else parent.id)
            for agent in self.by_key.values()
        )
        number = str(children + 1)
        relation = None if parent is None else "handoff" if around is None else "nested"
        agent = TrajectoryAgent(
            id=number if parent is None else f"{parent.id}.{number}",
            name=span.name,
            parent=None if parent is None else parent.id,
            relation=relation,
        )
        self.by_key[span.key] = agent
        return agent


def _name_agent(
    agent: TrajectoryAgent, turns: Sequence[TrafficTurn], named: Mapping[int, _AgentSpan]
) -> TrajectoryAgent:
    """Return an agent with the name on its spans, if they agree; a known name stays."""
    if agent.name is not None:
        return agent
    names = set(_list_names(agent, turns, named))
    return agent.model_copy(update={"name": names.pop()}) if len(names) == 1 else agent


def _list_names(
    agent: TrajectoryAgent, turns: Sequence[TrafficTurn], named: Mapping[int, _AgentSpan]
) -> Iterator[str]:
    for one in turns:
        if one.turn.agent == agent.id and one.call_number in named:
            yield named[one.call_number].name
