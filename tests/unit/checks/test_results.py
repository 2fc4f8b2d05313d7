from __future__ import annotations

import pytest

from ci_agent_eval.checks import ResultShape, ResultsHold
from ci_agent_eval.errors import InputError
from tests.builders import calling, tool_call
from tests.tables import each_row


def look_up(result, **fields):
    return tool_call("look_up", result=result, **fields)


def of(check, *calls):
    (found,) = check.assertions(calling(*calls))
    return found.passed, found.score, found.reason


PAID = {"status": "paid", "usd": 39}


@each_row("result", [PAID, '{"status": "paid", "usd": 39}'])
def test_a_result_must_contain_what_is_expected(result):
    assert of(ResultsHold("look_up", {"status": "paid"}), look_up(result))[0]
    assert of(ResultsHold("look_up", lambda given: given["usd"] < 40), look_up(result))[0]
    passed, score, reason = of(
        ResultsHold("look_up", {"usd": 5}), look_up(result), look_up({"usd": 5})
    )
    assert (passed, score) == (False, 0.5)
    assert reason == ('not in look_up(order_id=1001), which returned {"status": "paid", "usd": 39}')


@each_row(
    ("call", "reason"),
    [
        (look_up(None, error="timeout"), 'failed: "timeout"'),
        (look_up(PAID, steered_by="rules"), "was blocked by steering"),
        (look_up(None, result_unseen=True), "has no recorded result"),
        (look_up("{broken"), 'returned "{broken"'),
        (look_up("plain"), 'returned "plain"'),
    ],
)
def test_a_call_without_the_result_does_not_match(call, reason):
    holds = ResultsHold("look_up", {"status": "paid"})
    assert of(holds, call) == (False, 0.0, f"not in look_up(order_id=1001), which {reason}")
    passed, _, found = of(ResultShape("look_up", {"type": "object"}), call)
    assert not passed
    assert found.startswith("call 1: ")


def test_other_calls_do_not_count_and_none_is_a_failure():
    check = ResultsHold("look_up", {"status": "paid"}, which="last")
    assert of(check, look_up("x"), look_up(PAID), tool_call("refund", result="no"))[0]
    assert of(check, tool_call("refund"))[::2] == (False, "look_up was never called")


def test_shapes_of_results():
    shape = {"required": ["usd"], "properties": {"usd": {"type": "integer"}}}
    check = ResultShape("look_up", shape)
    assert of(check, look_up(PAID), look_up('{"usd": 3}')) == (
        True,
        1.0,
        "called twice, all conform",
    )
    passed, score, reason = of(check, look_up(PAID), look_up({"usd": "39"}))
    assert (passed, score) == (False, 0.5)
    assert reason.startswith("call 2: $.usd: ")


def test_an_empty_expectation_is_refused():
    with pytest.raises(InputError, match=r"^ResultsHold.expected: it names no value"):
        ResultsHold("look_up", {})
    with pytest.raises(InputError, match=r"^ResultShape"):
        ResultShape("look_up", {"type": "nothing"})
