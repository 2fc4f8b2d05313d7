from __future__ import annotations

import json

import pytest

from ci_agent_eval.engine.adapters.http import fill_template, resolve_pointer
from ci_agent_eval.engine.adapters.transcript import Transcript
from tests.tables import each_row


def transcript(*events, every_ms=10.0):
    heard = Transcript()
    for number, event in enumerate(events, 1):
        heard.add_line(json.dumps(event), number * every_ms)
    return heard


CALL = {"type": "tool_call", "name": "balance", "id": "a", "arguments": {"account": "checking"}}
RESULT = {"type": "tool_result", "id": "a", "result": 1500}


def test_parallel_calls_stay_in_one_turn_and_may_be_answered_in_any_order():
    other = {**CALL, "id": "b"}
    heard = transcript(CALL, other, {"type": "tool_result", "id": "b", "error": "no"}, RESULT)
    (turn,) = heard.turns
    assert [(c.result, c.error) for c in turn.tool_calls] == [(1500, None), (None, "no")]


def test_without_ids_results_answer_in_order():
    call = {"type": "tool_call", "name": "x"}
    heard = transcript(call, call, *({"type": "tool_result", "result": n} for n in (1, 2)))
    assert [c.result for c in heard.turns[0].tool_calls] == [1, 2]


def test_the_end_may_say_why():
    stop = transcript({"type": "end", "stop_reason": "refusal", "error": "no"}).stop
    assert (stop.reason, stop.error) == ("refusal", "no")


@each_row(
    "line",
    [
        "hello",
        "[]",
        '{"type": "other"}',
        '{"type": ["text"]}',
        '{"type": "text"}',
        '{"type": "text", "text": 3}',
        '{"type": "tool_call"}',
        '{"type": "tool_result", "result": 1}',
        '{"type": "end", "stop_reason": "bored"}',
        '{"type": "usage", "input": -1}',
        '{"type": "usage", "cost_usd": "much"}',
        "[" * 100_000,
    ],
)
def test_a_line_that_is_none_is_refused(line):
    with pytest.raises(ValueError, match=r"\w"):
        Transcript().add_line(line, 0)


def test_a_template_is_filled_and_data_in_it_is_not_a_template_again():
    words = {"{prompt}": "say {messages}", "{messages}": [{"role": "user", "content": "{prompt}"}]}
    assert fill_template({"a": ["{prompt}!", 3], "m": "{messages}"}, words) == {
        "a": ["say {messages}!", 3],
        "m": words["{messages}"],
    }


@each_row(
    ("pointer", "found"),
    [
        ("/a/0/b~1c", 7),
        ("/a/1", None),
        ("/a/x", None),
        ("/a/-1", None),
        ("/a/0/b~1c/d", None),
        ("/z", None),
        ("/~0", 1),
        ("/a/²", None),
    ],
)
def test_a_pointer_finds_what_is_there(pointer, found):
    assert resolve_pointer({"a": [{"b/c": 7}], "~": 1}, pointer) == found
