"""Spans that real instrumentations of OpenInference and OpenLLMetry recorded."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ci_agent_eval.contract.trajectory import TokenUsage
from ci_agent_eval.engine.traces import trajectory_from_spans
from tests.recorded_spans import read_recorded_spans

BALANCE = "$1,500.00 on checking"
CONVENTIONS = ("openinference", "openllmetry")


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_openai_agents_with_a_handoff_and_a_failing_tool(convention):
    trajectory = trajectory_from_spans(read_recorded_spans(f"{convention}-openai_agents"))
    assert [(turn.role, turn.content) for turn in trajectory.turns] == [
        ("user", "My balance?"),
        ("assistant", ""),
        ("assistant", ""),
        ("assistant", "It is $1,500.00."),
    ]
    handoff, good, bad = trajectory.tool_calls()
    assert (handoff.id, handoff.name, handoff.duration_ms) == ("call_1", "transfer_to_teller", None)
    assert (good.id, good.arguments, good.result) == ("call_2", {"account": "checking"}, BALANCE)
    assert (bad.id, bad.arguments, bad.result) == ("call_3", {"account": "none"}, None)
    assert "Error running tool" in bad.error
    assert min(good.duration_ms, bad.duration_ms) > 10
    used = TokenUsage(input=100, output=20, reasoning=0)
    assert [turn.tokens for turn in trajectory.agent_turns] == [used] * 3


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_langchain_with_an_agent_as_a_tool(convention):
    trajectory = trajectory_from_spans(read_recorded_spans(f"{convention}-langchain"))
    assert [(turn.role, turn.content) for turn in trajectory.turns] == [
        ("user", "My balance?"),
        ("assistant", ""),
        ("assistant", ""),
        ("assistant", "$1,500.00"),
        ("assistant", "It is $1,500.00."),
    ]
    asked, tool = trajectory.tool_calls()
    assert (asked.id, asked.arguments, asked.result) == (
        "call_1",
        {"question": "How much?"},
        "$1,500.00",
    )
    assert (tool.id, tool.arguments, tool.result) == ("call_2", {"account": "checking"}, BALANCE)
    assert asked.duration_ms > tool.duration_ms > 0
    assert [turn.finish_reason for turn in trajectory.agent_turns] == [
        *["tool_call"] * 2,
        *["stop"] * 2,
    ]


def test_indexed_attributes_of_2025():
    trajectory = trajectory_from_spans(read_recorded_spans("openllmetry-0.40-openai"))
    assert [(turn.role, turn.content) for turn in trajectory.turns] == [
        ("user", "My balance?"),
        ("assistant", ""),
        ("assistant", "It is $1,500.00."),
    ]
    (tool,) = trajectory.tool_calls()
    assert (tool.id, tool.arguments, tool.result) == ("call_1", {"account": "checking"}, BALANCE)
    used = TokenUsage(input=100, output=20)
    assert [turn.tokens for turn in trajectory.agent_turns] == [used] * 2
    assert [turn.finish_reason for turn in trajectory.agent_turns] == ["tool_call", "stop"]


def span(**attributes):
    return SimpleNamespace(
        attributes={name.replace("__", "."): value for name, value in attributes.items()},
        events=(),
        start_time=1,
        end_time=2,
        context=SimpleNamespace(span_id=1),
        parent=None,
        status=SimpleNamespace(is_ok=True, description=None),
    )


def test_messages_are_in_the_order_of_their_numbers():
    names = {f"llm.input_messages.{n}.message.content": f"{n}." for n in (10, 9, 2)}
    roles = {f"llm.input_messages.{n}.message.role": "user" for n in (10, 9, 2)}
    parts = {f"llm.output_messages.0.message.contents.{n}.message_content.text": f"{n};" for n in (11, 3)}  # fmt: skip
    found = trajectory_from_spans(
        [span(openinference__span__kind="LLM", **names, **roles, **parts)]
    )
    assert [turn.content for turn in found.turns] == ["2.", "9.", "10.", "3;\n11;"]


@pytest.mark.parametrize(
    "odd",
    [
        {"llm.input_messages.x.message.role": "user"},
        {"llm.input_messages.999999.message.content": "far"},
        {"llm.output_messages.0.message.role": "assistant"},
        {"llm.output_messages.0.message.tool_calls.0.tool_call.function": "f"},
        {"llm.output_messages.0.message.content": 5},
        {"llm.finish_reason": 5},
        {"llm.token_count.prompt": "many"},
    ],
)
def test_odd_attributes_are_left_out(odd):
    (turn,) = trajectory_from_spans([span(openinference__span__kind="LLM", **odd)]).turns
    assert (turn.content, turn.tool_calls, turn.tokens) == ("", (), None)


@pytest.mark.parametrize("kind", ["CHAIN", "RETRIEVER", "EMBEDDING", "TOOL", 5])
def test_other_spans_are_no_turns(kind):
    assert trajectory_from_spans([span(openinference__span__kind=kind)]).turns == ()
