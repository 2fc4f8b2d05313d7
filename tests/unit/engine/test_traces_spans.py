from __future__ import annotations

import itertools
import json
import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.engine.traces import trajectory_from_spans

OK = SimpleNamespace(is_ok=True, description=None)
FAILED = SimpleNamespace(is_ok=False, description="it broke")
_ids = itertools.count(1)


def span(operation="chat", start=0, end=None, *, parent=None, status=OK, events=(), **attributes):
    """A span by hand: times in milliseconds, `__` in names for a dot."""
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    return SimpleNamespace(
        attributes={"gen_ai.operation.name": operation, **named},
        events=events,
        start_time=start * 1_000_000,
        end_time=(start + 10 if end is None else end) * 1_000_000,
        context=SimpleNamespace(span_id=next(_ids)),
        parent=None if parent is None else parent.context,
        status=status,
    )


def text(role, content):
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def asks(name="balance", call_id="a", arguments=None):
    part = {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments or {"x": 1}}
    return {"role": "assistant", "parts": [part]}


def told(result, call_id="a", key="response"):
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, key: result}]}


def chat(asked, answered, start=0, **options):
    return span(
        "chat",
        start,
        gen_ai__input__messages=json.dumps(asked),
        gen_ai__output__messages=json.dumps(answered),
        **{"gen_ai__usage__input_tokens": 10, "gen_ai__usage__output_tokens": 2, **options},
    )


def tool(start=20, call_id="a", **options):
    named = {} if call_id is None else {"gen_ai__tool__call__id": call_id}
    return span("execute_tool", start, gen_ai__tool__name="balance", **named, **options)


ASKED = [text("user", "my balance?")]
FIRST = chat(ASKED, [asks()], operation__cost=0.25)
TOOL = tool(
    gen_ai__tool__call__result='{"usd": 1500}', gen_ai__tool__call__arguments='{"x": 1}', end=27
)
SECOND = chat([*ASKED, asks(), told({"usd": 1500})], [text("assistant", "It is 1500.")], 40)
AGENT = span("invoke_agent", 0, 60, gen_ai__usage__input_tokens=999)


def test_a_conversation_is_read_from_its_spans():
    prompt, first, second = trajectory_from_spans([AGENT, FIRST, TOOL, SECOND]).turns
    assert (prompt.role, prompt.content) == ("user", "my balance?")
    (call,) = first.tool_calls
    assert (call.id, call.name, call.arguments) == ("a", "balance", {"x": 1})
    assert (call.result, call.error, call.duration_ms) == ({"usd": 1500}, None, 7)
    assert (first.tokens.input, first.tokens.output, first.cost_usd) == (10, 2, 0.25)
    assert (first.latency_ms, second.latency_ms) == (10, 10)
    assert (second.role, second.content, second.cost_usd) == ("assistant", "It is 1500.", None)


def test_the_order_of_the_spans_does_not_matter():
    spans = [AGENT, FIRST, TOOL, SECOND]
    expected = trajectory_from_spans(spans)
    for seed in range(5):
        random.Random(seed).shuffle(spans)
        assert trajectory_from_spans(spans) == expected


def test_spans_of_other_things_tell_nothing():
    assert trajectory_from_spans([AGENT, span("embeddings"), span("")]).turns == ()


def test_what_was_not_recorded_is_not_measured():
    (turn,) = trajectory_from_spans([span("chat", gen_ai__usage__input_tokens=1)]).turns
    assert (turn.content, turn.tokens, turn.cost_usd, turn.source) == ("", None, None, None)


@pytest.mark.parametrize(
    "usage",
    [
        {"gen_ai__usage__prompt_tokens": 7, "gen_ai__usage__completion_tokens": 3},
        {"gen_ai__usage__input_tokens": 7, "gen_ai__usage__output_tokens": 3},
    ],
)
@pytest.mark.parametrize(
    "cached", ["gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.details.cache_read_tokens"]
)
def test_older_names_of_tokens_are_known(usage, cached):
    (turn,) = trajectory_from_spans([span("chat", **usage, **{cached: 5})]).turns
    assert (turn.tokens.input, turn.tokens.output, turn.tokens.cached) == (7, 3, 5)


def test_a_tool_that_failed_has_its_error():
    raised = SimpleNamespace(name="exception", attributes={"exception.message": "no such account"})
    spans = [FIRST, tool(status=FAILED, events=[raised])]
    (call,) = trajectory_from_spans(spans).tool_calls()
    assert (call.result, call.error) == (None, "no such account")


def test_calls_are_known_by_their_tools_spans_where_contents_are_not_recorded():
    spans = [span("chat"), tool(gen_ai__tool__call__result="1")]
    (turn,) = trajectory_from_spans(spans).turns
    assert [(c.name, c.result) for c in turn.tool_calls] == [("balance", 1)]


@pytest.mark.parametrize("key", ["response", "result"])
def test_results_of_tools_that_ran_elsewhere_are_in_the_next_request(key):
    later = chat([*ASKED, asks(), told("1500", key=key)], [text("assistant", "ok")], 40)
    (call,) = trajectory_from_spans([FIRST, later]).tool_calls()
    assert call.result == 1500


def test_ids_that_a_model_repeats_do_not_mix_results_up():
    spans = [
        FIRST,
        tool(20, gen_ai__tool__call__result="1"),
        chat([*ASKED, asks(), told(1)], [asks()], 40),
        tool(60, gen_ai__tool__call__result="2"),
    ]
    assert [c.result for c in trajectory_from_spans(spans).tool_calls()] == [1, 2]


def test_calls_at_once_keep_their_own_results():
    both = {
        "role": "assistant",
        "parts": [*asks(call_id="a")["parts"], *asks(call_id="b")["parts"]],
    }
    spans = [
        chat(ASKED, [both]),
        tool(21, "b", gen_ai__tool__call__result="2"),
        tool(22, "a", gen_ai__tool__call__result="1"),
    ]
    assert [c.result for c in trajectory_from_spans(spans).tool_calls()] == [1, 2]


def test_one_answer_told_by_two_instrumentations_counts_once():
    outer = chat(ASKED, [text("assistant", "hi")])
    inner = chat(ASKED, [text("assistant", "hi")], 2, parent=outer)
    assert len(trajectory_from_spans([outer, inner]).agent_turns) == 1


def test_an_agent_that_a_tool_called_costs_but_its_prompts_are_not_the_users():
    outer = tool(20)
    inner = chat([text("user", "inner task")], [text("assistant", "inner")], 22, parent=outer)
    trajectory = trajectory_from_spans([FIRST, outer, inner, SECOND])
    assert [turn.role for turn in trajectory.turns] == [
        "user",
        "assistant",
        "assistant",
        "assistant",
    ]
    assert trajectory.total_tokens == 36


def test_a_model_call_that_failed_is_no_turn_and_its_prompt_counts_once():
    failed = span("chat", 0, status=FAILED, gen_ai__input__messages=json.dumps(ASKED))
    again = chat(ASKED, [text("assistant", "hi")], 20)
    assert [t.role for t in trajectory_from_spans([failed, again]).turns] == ["user", "assistant"]


def test_earlier_messages_of_a_conversation_are_not_repeated():
    history = [text("user", "one"), text("assistant", "1"), text("user", "two")]
    turns = trajectory_from_spans([chat(history, [text("assistant", "2")])]).turns
    assert [turn.content for turn in turns] == ["two", "2"]


def event(name, **attributes):
    return SimpleNamespace(
        name=name, attributes={k.replace("__", "."): v for k, v in attributes.items()}
    )


CALLS = [{"id": "a", "type": "function", "function": {"name": "balance", "arguments": '{"x": 1}'}}]


@pytest.mark.parametrize(
    "given_span",
    [
        span(
            events=[
                event("gen_ai.user.message", content="hello", role="user"),
                event("gen_ai.choice", message=json.dumps({"content": "hi", "tool_calls": CALLS})),
            ]
        ),
        span(
            events=[
                event(
                    "gen_ai.client.inference.operation.details",
                    gen_ai__input__messages=json.dumps([text("user", "hello")]),
                    gen_ai__output__messages=json.dumps([text("assistant", "hi"), asks()]),
                )
            ]
        ),
    ],
)
def test_messages_told_by_events_are_read(given_span):
    prompt, answer = trajectory_from_spans([given_span]).turns
    assert (prompt.content, answer.content) == ("hello", "hi")
    assert [(c.name, c.arguments) for c in answer.tool_calls] == [("balance", {"x": 1})]


def test_messages_listed_in_an_attribute_called_events_are_read():
    given_span = span()
    given_span.attributes["events"] = json.dumps(
        [
            {"event.name": "gen_ai.user.message", "content": "hello"},
            {"event.name": "gen_ai.choice", "message": {"content": "hi", "tool_calls": CALLS}},
        ]
    )
    prompt, answer = trajectory_from_spans([given_span]).turns
    assert (prompt.content, answer.content, len(answer.tool_calls)) == ("hello", "hi", 1)


def test_the_oldest_events_are_read():
    given_span = span(
        events=[
            event("gen_ai.content.prompt", gen_ai__prompt="hello"),
            event("gen_ai.content.completion", gen_ai__completion="hi"),
        ]
    )
    assert [t.content for t in trajectory_from_spans([given_span]).turns] == ["hello", "hi"]


def test_a_span_that_goes_round_in_a_circle_ends():
    given_span = span("chat")
    given_span.parent = given_span.context
    assert len(trajectory_from_spans([given_span]).turns) <= 1


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "parts",
                    "type",
                    "content",
                    "id",
                    "name",
                    "arguments",
                    "message",
                    "tool_calls",
                    "function",
                    "event.name",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
names = st.sampled_from(
    [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "events",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "operation.cost",
        "gen_ai.tool.name",
        "gen_ai.tool.call.id",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    ]
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["chat", "execute_tool"]),
            st.dictionaries(names, anything | anything.map(json.dumps)),
        ),
        max_size=3,
    )
)
def test_whatever_spans_say_is_a_trajectory(told_spans):
    spans = []
    for number, (operation, attributes) in enumerate(told_spans):
        spans.append(span(operation, number * 20))
        spans[-1].attributes.update(attributes)
    trajectory = trajectory_from_spans(spans)
    assert type(trajectory).model_validate_json(trajectory.model_dump_json()) == trajectory


def test_why_a_model_stopped_is_kept():
    cut = chat(ASKED, [text("assistant", "It")], gen_ai__response__finish_reasons=("length",))
    none = chat(ASKED, [text("assistant", "It")], 20, gen_ai__response__finish_reasons=())
    turns = trajectory_from_spans([cut, none]).agent_turns
    assert [turn.finish_reason for turn in turns] == ["length", None]
