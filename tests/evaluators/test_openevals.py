"""Evaluators of openevals and agentevals."""

from __future__ import annotations

import asyncio

import pytest
from agentevals.graph_trajectory.strict import graph_trajectory_strict_match
from agentevals.trajectory.match import create_trajectory_match_evaluator
from openevals.exact import exact_match, exact_match_async
from openevals.json import create_json_match_evaluator
from openevals.string.levenshtein import levenshtein_distance
from openevals.trajectory import create_async_trajectory_match_evaluator

from ci_agent_eval.checks import as_check, from_evaluator
from ci_agent_eval.checks.evaluator_base import EvaluatorError
from ci_agent_eval.errors import InputError


def call(identity, name, arguments):
    function = {"name": name, "arguments": arguments}
    return {"id": identity, "type": "function", "function": function}


REFERENCE = [
    {"role": "user", "content": "…"},
    {"role": "assistant", "content": "", "tool_calls": [call("a", "find_order", '{"id": 1001}')]},
    {"role": "tool", "tool_call_id": "a", "content": "…"},
    {"role": "assistant", "content": "…"},
    {"role": "user", "content": "…"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [call("b", "refund", '{"usd": 39, "id": 1001}')],
    },
    {"role": "tool", "tool_call_id": "b", "content": "…"},
    {"role": "assistant", "content": "…"},
]


def test_functions_of_an_answer(judge):
    expected = {"expected_output": "Refunded 39 dollars."}
    assert judge(from_evaluator(exact_match, **expected)) == ("exact_match", True, 1, "true")
    assert judge(from_evaluator(exact_match, expected_output="no"))[1:3] == (False, 0)
    near = from_evaluator(
        levenshtein_distance, expected_output="Refunded 40 dollars.", threshold=0.8
    )
    assert judge(near) == ("levenshtein_distance", True, 0.9, "0.9, passes from 0.8")


@pytest.mark.parametrize("mode", ["strict", "unordered", "subset", "superset"])
def test_trajectories(judge, mode):
    match = create_trajectory_match_evaluator(trajectory_match_mode=mode)
    found = judge(from_evaluator(match, expected_output=REFERENCE))
    assert found == (f"trajectory_{mode}_match", True, 1, "true")
    other = [*REFERENCE[:5], {**REFERENCE[5], "tool_calls": [call("b", "refund", "{}")]}]
    assert judge(from_evaluator(match, expected_output=other))[1] is False


def test_several_scores_are_several_assertions(refund):
    match = create_json_match_evaluator(aggregator=None)
    given = {"output": {"usd": 39, "paid": True}, "expected_output": {"usd": 39, "paid": False}}
    found = from_evaluator(match, **given).assertions(refund)
    assert sorted((one.name, one.passed) for one in found) == [
        ("json_match:paid", False),
        ("json_match:usd", True),
    ]


def test_async_evaluators(judge, refund):
    expected = {"expected_output": "Refunded 39 dollars."}
    assert judge(from_evaluator(exact_match_async, **expected))[1] is True
    match = create_async_trajectory_match_evaluator(trajectory_match_mode="strict")

    async def run():
        return await from_evaluator(match, expected_output=REFERENCE).assertions(refund)

    assert asyncio.run(run())[0].passed


def test_errors(judge):
    with pytest.raises(InputError, match=r"exact_match: it needs reference_outputs; give it"):
        judge(as_check(exact_match))
    with pytest.raises(InputError, match="it makes an evaluator; call it, create_trajectory_match"):
        judge(as_check(create_trajectory_match_evaluator))
    with pytest.raises(EvaluatorError, match="evaluator graph_trajectory_strict_match: TypeError"):
        judge(from_evaluator(graph_trajectory_strict_match, expected_output={"steps": []}))
