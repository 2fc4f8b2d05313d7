"""Logs of calls and conversations make the trajectory that the calls made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.model_traffic.message_logs import (
    UnreadableLogError,
    build_log_trajectory,
    parse_conversation,
    parse_logged_call,
)
from tests import llm_wire
from tests.trace_files import ANTHROPIC, chat_log


def read_calls(records):
    return [parse_logged_call(record["request"], record["response"]) for record in records]


def build(calls):
    return build_log_trajectory(list(calls), lambda _: None)


def summarize(trajectory):
    return [(turn.role, turn.content, len(turn.tool_calls)) for turn in trajectory.turns]


def test_calls_of_one_trace_are_one_conversation():
    trajectory, numbers = build(read_calls(chat_log()))

    assert summarize(trajectory) == [
        ("user", "Where is order 7? I am jane@shop.test", 0),
        ("assistant", "", 1),
        ("assistant", "It is shipped, jane@shop.test.", 0),
    ]
    (call,) = trajectory.tool_calls()
    assert (call.name, call.result) == ("lookup", "shipped")
    assert trajectory.total_tokens == 198
    assert [turn.finish_reason for turn in trajectory.agent_turns] == ["tool_call", "stop"]
    assert trajectory.latencies_ms == ()
    assert numbers == [1, 1, 2]


def test_anthropic_s_conversation_is_split_into_its_calls():
    calls = list(parse_conversation(ANTHROPIC))
    trajectory, _ = build(calls)

    assert {call.format for call in calls} == {"anthropic-messages"}
    assert summarize(trajectory) == [
        ("user", "Hi", 0),
        ("assistant", "Hello!", 0),
        ("user", "Refund order 9", 0),
        ("assistant", "", 1),
        ("assistant", "Refunded.", 0),
    ]
    assert trajectory.total_tokens is None
    assert {turn.finish_reason for turn in trajectory.agent_turns} == {None}


def test_openai_s_conversation_is_split_into_its_calls():
    said = chat_log()[1]["request"]["messages"]
    calls = list(parse_conversation({"messages": [*said, {"role": "assistant", "content": "Ok"}]}))

    assert {call.format for call in calls} == {"openai-chat"}
    assert [turn.content for turn in build(calls)[0].agent_turns] == ["", "Ok"]


@pytest.mark.parametrize(
    ("request_", "answer", "name"),
    [
        ({"input": "Hi"}, llm_wire.response_body(text="Hello"), "openai-responses"),
        ({"messages": []}, llm_wire.chat_body(text="Hello"), "openai-chat"),
        ({"messages": []}, llm_wire.message_body(text="Hello"), "anthropic-messages"),
    ],
)
def test_the_answer_tells_the_format(request_, answer, name):
    call = parse_logged_call(request_, answer)

    assert call.format == name
    assert build([call])[0].agent_turns[-1].content == "Hello"


def test_an_error_answer_is_no_turn():
    answer = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    asked = {"messages": [{"role": "user", "content": "Hi"}]}

    assert build([parse_logged_call(asked, answer)])[0].agent_turns == ()


@pytest.mark.parametrize(("request_", "answer"), [({}, {}), ([], {}), ({}, "text"), ({}, None)])
def test_other_records_are_refused(request_, answer):
    with pytest.raises(UnreadableLogError):
        parse_logged_call(request_, answer)


@pytest.mark.parametrize("messages", [None, "text", ["text"], {"role": "user"}])
def test_other_messages_are_refused(messages):
    with pytest.raises(UnreadableLogError):
        list(parse_conversation({"messages": messages}))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
MESSAGE = st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "tool_call_id"]), ANY)


@given(st.lists(MESSAGE | st.builds(lambda m: {**m, "role": "assistant"}, MESSAGE)), st.booleans())
def test_any_messages_are_read_without_an_error(messages, is_anthropic):
    record = {"messages": messages, **({"system": "x"} if is_anthropic else {})}
    build(parse_conversation(record))


@given(ANY, ANY)
def test_any_call_is_read_or_refused(request_, answer):
    try:
        call = parse_logged_call(request_, answer)
    except UnreadableLogError:
        return
    build([call])
