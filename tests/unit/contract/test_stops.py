"""Ends of runs in a record: what they make of its outcome."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ci_agent_eval.contract.stops import find_stop_cause
from ci_agent_eval.contract.trajectory import Turn
from tests.builders import episode, tool_call, turn
from tests.tables import each_row


@each_row(
    ("given", "kept"),
    [("refusal", ("refusal",)), ({"truncated", "refusal"}, ("refusal", "truncated")), ((), ())],
)
def test_allowed_stops_are_one_or_several_in_one_order(given, kept):
    assert episode(allowed_stops=given).allowed_stops == kept


@each_row("given", ["completed", {"model_error"}, ["refused"], 3, [3]])
def test_what_is_no_end_of_an_agent_cannot_be_allowed(given):
    with pytest.raises(ValidationError, match="allowed_stops"):
        episode(allowed_stops=given)


@each_row(
    ("word", "kept"),
    [
        ("end_turn", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("tool_use", "tool_call"),
        ("MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"),
    ],
)
def test_finish_reasons_have_one_spelling(word, kept):
    assert Turn(role="assistant", finish_reason=word).finish_reason == kept


@each_row(
    ("said", "stop"),
    [
        ({"content": "Done.", "finish_reason": "stop"}, None),
        ({"content": "", "finish_reason": "stop"}, "empty_answer"),
        ({"content": " \n", "tool_calls": []}, "empty_answer"),
        ({"content": "", "tool_calls": [tool_call()]}, None),
        ({"content": "", "tool_calls": [tool_call()], "finish_reason": "length"}, "truncated"),
        ({"content": "I cannot do that."}, None),
        ({"content": "Sure", "finish_reason": "content_filter"}, "refusal"),
    ],
)
def test_an_answer_is_judged_by_what_the_provider_says_and_never_by_its_text(said, stop):
    found = find_stop_cause(Turn.model_validate(turn(**said)))
    assert (found and found.reason) == stop


@each_row("finish", ["length", "stop"])
def test_an_answer_that_was_all_reasoning_says_so(finish):
    spent = {"output": 1000, "reasoning": 1000}
    starved = Turn(role="assistant", content="", tokens=spent, finish_reason=finish)
    found = find_stop_cause(starved)
    assert found.error.endswith("; 1,000 of 1,000 output tokens were reasoning")
