"""Which span belongs to which recorded model call, seen by the agents that the spans name."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from ci_agent_eval.contract.trajectory import TokenUsage
from ci_agent_eval.engine.traces.traffic_spans import complete_traffic
from ci_agent_eval.model_traffic.trajectory import build_trajectory
from tests.traffic_calls import Traffic, answer, result, said, tool, user

LATE = range(1, 3)
"""A span that was open during both calls."""


class Spans:
    """Spans of one run, with the calls that began while each was open."""

    def __init__(self):
        self.spans, self.enclosed, self.ids = [], {}, itertools.count(1)

    def add(self, enclosed=LATE, parent=None, failed=False, **attributes):
        number = next(self.ids)
        self.enclosed[number] = enclosed
        found = SimpleNamespace(
            attributes={name.replace("__", "."): value for name, value in attributes.items()},
            events=(),
            start_time=number * 1_000_000,
            end_time=number * 1_000_000 + 5_000_000,
            context=SimpleNamespace(span_id=number),
            parent=None if parent is None else parent.context,
            status=SimpleNamespace(is_ok=not failed, description=None),
        )
        self.spans.append(found)
        return found

    def agent(self, name, parent=None):
        return self.add(
            parent=parent, gen_ai__operation__name="invoke_agent", gen_ai__agent__name=name
        )

    def llm(self, agent, **options):
        return self.add(**{"gen_ai__operation__name": "chat", "parent": agent, **options})

    def use(self, **options):
        fields = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "look"}
        return self.add(**{**fields, **options})

    def complete(self, traffic):
        found = build_trajectory(traffic.calls)
        return complete_traffic(found, traffic.calls, self.spans, self.enclosed)


def two_calls(first=None, second=None):
    """Two calls of one conversation that were open at the same time."""
    traffic = Traffic()
    traffic.ask(user("a"), gives=first or answer("A."))
    traffic.ask(user("a"), said("A."), user("b"), gives=second or answer("B."))
    return traffic


def names_of(completed):
    names = {agent.id: agent.name for agent in completed.trajectory.agents}
    turns = (one.turn for one in completed.trajectory.turns if one.turn.role == "assistant")
    return [names.get(turn.agent) for turn in turns]


def test_the_current_span_decides_before_the_order():
    traffic, spans = two_calls(), Spans()
    one, other = spans.llm(spans.agent("one")), spans.llm(spans.agent("other"))
    inner = spans.add(parent=other)
    for call, span in zip(traffic.calls, (inner, one), strict=True):
        call.span_id = format(span.context.span_id, "016x")
    completed = spans.complete(traffic)
    assert (names_of(completed), completed.unmatched) == (["other", "one"], 0)


def test_the_outer_one_of_two_spans_of_a_call_counts():
    traffic, spans = two_calls(), Spans()
    outer = [spans.llm(spans.agent("one")), spans.llm(spans.agent("other"))]
    inner = [spans.llm(span) for span in outer]
    for call, span in zip(traffic.calls, inner, strict=True):
        call.span_id = format(span.context.span_id, "016x")
    completed = spans.complete(traffic)
    assert (names_of(completed), completed.unmatched) == (["one", "other"], 0)


def test_the_id_of_the_answer_decides_before_the_order():
    traffic, spans = two_calls(answer("A.", id="r1"), answer("B.", id="r2")), Spans()
    spans.llm(spans.agent("other"), gen_ai__response__id="r2")
    spans.llm(spans.agent("one"), gen_ai__response__id="r1")
    assert names_of(spans.complete(traffic)) == ["one", "other"]


@pytest.mark.parametrize(
    ("second", "figure"),
    [
        (answer("B.", model="big"), {"gen_ai__response__model": "big"}),
        (
            answer("B.", tokens=TokenUsage(input=90, output=5)),
            {"gen_ai__usage__input_tokens": 90, "gen_ai__usage__output_tokens": 5},
        ),
        (
            answer("B.", tool("look", "t2")),
            {
                "llm__output_messages__0__message__tool_calls__0__tool_call__id": "t2",
                "llm__output_messages__0__message__tool_calls__0__tool_call__function__name": "look",
            },
        ),
    ],
    ids=["model", "tokens", "tool calls"],
)
def test_figures_decide_before_the_order(second, figure):
    traffic, spans = two_calls(answer("A.", model="small"), second), Spans()
    spans.llm(spans.agent("other"), **figure)
    spans.llm(spans.agent("one"))
    assert names_of(spans.complete(traffic)) == ["one", "other"]


@pytest.mark.parametrize(
    "odd",
    [
        {"enclosed": range(3, 3)},
        {"gen_ai__usage__input_tokens": 1, "gen_ai__usage__output_tokens": 1},
    ],
    ids=["before any call", "other figures"],
)
def test_a_span_that_fits_no_call_is_counted(odd):
    traffic, spans = two_calls(), Spans()
    spans.llm(spans.agent("one"), **odd)
    completed = spans.complete(traffic)
    assert (completed.unmatched, completed.trajectory.agents) == (1, ())
    assert completed.trajectory == build_trajectory(traffic.calls)


def test_a_failed_call_has_the_span_that_failed():
    traffic, spans = Traffic(), Spans()
    traffic.finish(traffic.start(user("a")), answer("no"), status=500)
    spans.llm(spans.agent("one"), enclosed=range(1, 2), failed=True)
    assert spans.complete(traffic).unmatched == 0


def test_agents_stay_one_if_a_call_has_no_span():
    traffic, spans = two_calls(), Spans()
    traffic.ask(user("a"), said("A."), user("b"), said("B."), user("c"), gives=answer("C."))
    spans.llm(spans.agent("one"), enclosed=range(1, 2))
    spans.llm(spans.agent("other"), enclosed=range(2, 3))
    assert spans.complete(traffic).trajectory.agents == ()


def test_an_agent_that_follows_another_got_the_conversation():
    traffic, spans = two_calls(), Spans()
    spans.llm(spans.agent("desk"), enclosed=range(1, 2))
    spans.llm(spans.agent("teller"), enclosed=range(2, 3))
    desk, teller = spans.complete(traffic).trajectory.agents
    assert (desk.id, desk.name, desk.relation) == ("1", "desk", None)
    assert (teller.id, teller.parent, teller.relation) == ("1.1", "1", "handoff")


def using(*calls):
    """An answer with tool calls, and the request that returns a result of each."""
    traffic = Traffic()
    traffic.ask(user("a"), gives=answer("", *calls))
    results = (result("seen", call.id, call.name) for call in calls)
    traffic.ask(user("a"), said("", *calls), *results, gives=answer("B."))
    return traffic


def durations(completed):
    calls = completed.trajectory.turns[1].turn.tool_calls
    return [call.duration_ms for call in calls]


def test_tools_are_told_apart_by_ids_and_without_them_by_arguments():
    traffic, spans = using(tool("look", "t1", at="x"), tool("look", "t2", at="y")), Spans()
    spans.use(enclosed=range(2, 3), gen_ai__tool__call__id="t2")
    assert durations(spans.complete(traffic)) == [None, 5]
    spans = Spans()
    spans.use(enclosed=range(2, 3), gen_ai__tool__call__arguments='{"at": "y"}')
    assert durations(spans.complete(traffic)) == [None, 5]
    spans = Spans()
    spans.use(enclosed=range(2, 3))
    assert durations(spans.complete(traffic)) == [5, None]
    spans.use(enclosed=range(2, 3))
    assert durations(spans.complete(traffic)) == [5, 5]


@pytest.mark.parametrize(
    "odd",
    [
        {"enclosed": range(1, 2)},
        {"gen_ai__tool__name": "touch"},
        {"gen_ai__tool__call__id": "t9"},
    ],
    ids=["before its call", "another name", "another id"],
)
def test_a_span_of_another_tool_call_adds_nothing(odd):
    traffic, spans = using(tool("look", "t1")), Spans()
    spans.use(**{"enclosed": range(2, 3), **odd})
    assert durations(spans.complete(traffic)) == [None]


def test_a_seen_result_stays():
    traffic, spans = using(tool("look", "t1")), Spans()
    spans.use(enclosed=range(2, 3), gen_ai__tool__call__result="other")
    (call,) = spans.complete(traffic).trajectory.turns[1].turn.tool_calls
    assert (call.result, call.error, call.duration_ms) == ("seen", None, 5)
