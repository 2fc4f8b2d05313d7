"""Every form in which an agent may reply is read as the same turn."""

from __future__ import annotations

import itertools
from types import SimpleNamespace as Bag

import pytest

from ci_agent_eval.authoring.simulation.app_under_test import parse_reply, record_reply
from ci_agent_eval.contract.stops import Stop
from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall
from ci_agent_eval.engine import Reply as EngineReply
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder, build_initial_episode
from tests.tables import each_row


def turn_of(said):
    """The agent's turn as an episode records it."""
    ticks = itertools.count()
    recorder = EpisodeRecorder(build_initial_episode("reply"), clock=lambda: next(ticks))
    with recorder.turn("hello") as turn:
        record_reply(parse_reply(said), turn)
    return recorder.turns[-1]


CALL = {"name": "refund", "arguments": {"order": 1}, "result": "ok", "id": "c1"}
USED = {"input": 10, "output": 5, "cached": 2}
FORMS = {
    "mapping": {"text": "Done", "tool_calls": [CALL], "usage": USED, "cost_usd": 0.5},
    "object": Bag(text="Done", calls=[Bag(**CALL)], tokens=Bag(**USED), cost_usd=0.5),
    "engine": EngineReply("Done", [ToolCall(**CALL)], TokenUsage(**USED), 0.5),
    "opik": {"role": "assistant", "content": "Done", "tool_calls": [CALL], "usage": USED, "cost_usd": 0.5},
    "openai": {
        "role": "assistant",
        "content": "Done",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"order": 1}'}, "result": "ok"}
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": {"cached_tokens": 2}},
        "cost_usd": 0.5,
    },
    "langchain": Bag(
        content="Done",
        tool_calls=[{"name": "refund", "args": {"order": 1}, "id": "c1", "result": "ok"}],
        usage_metadata={"input_tokens": 10, "output_tokens": 5, "cached": 2},
        cost_usd=0.5,
    ),
    "pydantic_ai": Bag(
        output="Done",
        tool_calls=[CALL],
        usage=lambda: Bag(input_tokens=10, output_tokens=5, cache_read_tokens=2),
        cost_usd=0.5,
    ),
}  # fmt: skip


EMPTY = "its answer is empty: no text, no typed output, no attachment and no tool call"


@each_row("form", sorted(FORMS))
def test_every_form_is_the_same_turn(form):
    turn = turn_of(FORMS[form])
    assert (turn.content, turn.tool_calls) == ("Done", (ToolCall(**CALL),))
    assert (turn.tokens, turn.cost_usd, turn.source) == (TokenUsage(**USED), 0.5, "live")


@each_row(
    ("usage", "tokens"),
    [
        ({"input": 3}, None),
        ({"output_tokens": 3, "cached": 1}, None),
        ({"cached": 1}, None),
        ({"input": 3, "output": 0}, TokenUsage(input=3, output=0)),
        ({"total": 3}, TokenUsage(output=3)),
        ({"input": 3, "total": 10}, TokenUsage(input=3, output=7)),
        (Bag(completion_tokens=4, total_tokens=10), TokenUsage(input=6, output=4)),
    ],
)
def test_half_of_a_usage_is_no_measurement(usage, tokens):
    assert turn_of({"text": "a", "usage": usage}).tokens == tokens


@each_row(
    ("said", "stop"),
    [
        ({"stop_reason": "timeout", "error": "too slow"}, ("timeout", "too slow")),
        ({"stop_reason": "refusal", "error": "no"}, ("refusal", "no")),
        ({"stop_reason": "completed"}, None),
        ({"stop_reason": "end_turn"}, None),
        (
            {"stop_reason": "max_tokens"},
            ("truncated", "its answer was cut at the token limit"),
        ),
        (
            {"finish_reason": "length"},
            ("truncated", "its answer was cut at the token limit"),
        ),
        ({"finish_reason": "content_filter"}, ("refusal", "the model refused: Hm.")),
        ({"finish_reason": "tool_calls"}, None),
        ({"text": " "}, ("empty_answer", EMPTY)),
        ({"text": "", "tool_calls": [{"name": "note"}]}, None),
    ],
)
def test_a_run_that_ended_without_an_answer_says_so(said, stop):
    assert parse_reply({"text": "Hm.", **said}).stop == (stop and Stop(*stop))


def test_anthropics_stop_reason_is_the_finish_reason():
    assert parse_reply({"text": "Hm.", "stop_reason": "end_turn"}).finish_reason == "end_turn"


@each_row(
    ("said", "problem"),
    [
        (None, "the agent returned a NoneType without a text"),
        (3, "the agent returned a int without a text"),
        ({"text": 3}, "the agent returned a dict without a text"),
        ({"text": "a", "tool_calls": "refund"}, "the agent's tool_calls are a str; return a list"),
        ({"text": "a", "tool_calls": [{}]}, "a tool call of the agent's (dict) has no name"),
        ({"text": "a", "usage": {"all": 3}}, "the agent's usage is a dict without input"),
        ({"text": "a", "usage": {"input": -1, "output": 1}}, "tokens: input: "),
        ({"text": "a", "usage": {"input": 4, "total": 3}}, "tokens: output: "),
        ({"text": "a", "usage": {"output": "few", "total": 3}}, "tokens: output: "),
        ({"text": "a", "cost_usd": "much"}, "reply: cost_usd: "),
        ({"text": "a", "source": "invented"}, "reply: source: "),
    ],
)
def test_what_cannot_be_read_is_said(said, problem):
    with pytest.raises(InputError) as refused:
        turn_of(said)
    assert str(refused.value).startswith(problem)
