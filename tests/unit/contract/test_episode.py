"""The episode of the contract: the documents' own examples, and what is refused."""

from __future__ import annotations

import ast
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ci_agent_eval.contract.base import describe_validation_error
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode
from tests.builders import episode, failing, tool_call, turn
from tests.tables import each_row

# As it stands in the overhaul plan (seed document 000), with its three dots.
DOCUMENTED = """{
  "scenario_id": "refund_flow_v1",
  "thread_id": "...",
  "assertions": [...],
  "scores": [...],
  "budgets": {
    "max_turns": 5,
    "tool_calls": {"used": 3, "limit": 4},
    "latency_ms": {"p95": 1200, "limit": 2000}
  },
  "trajectory_summary": {...}
}"""


def documented():
    """Return the documented example; only the dots, which are not JSON, are filled in."""
    text = DOCUMENTED.replace("[...]", "[]").replace("{...}", '{"steps_count": 3}')
    return ast.literal_eval(text)


def test_the_documented_example_is_read_as_it_stands():
    read = Episode.from_any(documented())
    budgets = read.budgets
    assert budgets.max_turns.limit == 5
    assert budgets.max_turns.used == 3
    assert (budgets.tool_calls.used, budgets.tool_calls.limit) == (3, 4)
    assert budgets.latency_ms.statistic == "p95"
    assert (budgets.latency_ms.used, budgets.latency_ms.limit) == (1200, 2000)
    assert read.is_passing()


def test_the_shapes_of_the_opik_pull_request_are_read():
    read = Episode.from_any(
        {
            "scenario_id": "refund",
            "thread_id": "t1",
            "assertions": [
                {"name": "polite", "passed": False, "reason": "rude", "severity": "warning"},
                {"name": "refunds", "passed": True, "severity": "error"},
            ],
            "scores": [{"name": "helpfulness", "value": 0.8, "reason": None}],
            "budgets": {
                "max_turns": {"used": 3, "limit": 5, "unit": "turns"},
                "latency_ms": {"used": 900, "limit": 2000, "unit": "ms"},
                "token_usage": {"used": 120, "limit": 500},
                "custom": {"retries": {"used": 1, "limit": 2}},
            },
            "trajectory_summary": {"steps_count": 3, "tool_calls_count": 2, "extra": "kept"},
            "metadata": {"dataset": "tests"},
        }
    )
    assert read.is_passing(), "a warning does not fail an episode"
    assert read.budgets.latency_ms.statistic == "total"
    assert read.trajectory_summary.model_extra == {"extra": "kept"}


def test_an_object_with_to_dict_or_attributes_is_read():
    class WithToDict:
        def to_dict(self):
            return {"scenario_id": "a"}

    class WithAttributes:
        scenario_id = "b"

    assert Episode.from_any(WithToDict()).scenario_id == "a"
    assert Episode.from_any(WithAttributes()).scenario_id == "b"


def test_is_passing_and_its_assertion_name_what_is_wrong():
    read = failing(budgets={"tool_calls": {"used": 6, "limit": 4}})
    assert not read.is_passing()
    with pytest.raises(
        AssertionError, match=r"says sorry: it did not; budget tool_calls: 6, limit"
    ):
        read.assert_is_passing()


@each_row(
    ("change", "where", "what"),
    [
        ({"budgets": {"tool_cals": 3}}, "budgets", "did you mean 'tool_calls'"),
        ({"budgets": {"tool_calls": {"used": 1}}}, "budgets.tool_calls.limit", "required"),
        ({"budgets": {"max_turns": math.nan}}, "budgets.max_turns.limit", "finite"),
        ({"budgets": {"max_turns": math.inf}}, "budgets.max_turns.limit", "finite"),
        ({"budgets": {"max_turns": -1}}, "budgets.max_turns.limit", "greater than or equal to 0"),
        ({"budgets": {"max_turns": True}}, "budgets.max_turns", "not true or false"),
        ({"budgets": {"custom": {"x": -1}}}, "budgets.custom.x.limit", "greater than"),
        (
            {"budgets": {"latency_ms": {"p95": 1, "p50": 1, "limit": 2}}},
            "budgets.latency_ms",
            "name one statistic",
        ),
        ({"budgets": {"latency_ms": {"p96": 1, "limit": 2}}}, "budgets.latency_ms.p96", "Extra"),
        ({"assertions": [{"name": "a", "passed": True, "score": 1.5}]}, "assertions.0.score", "1"),
        ({"assertions": [{"name": "a", "pased": True}]}, "assertions.0.passed", "required"),
        ({"scores": [{"name": "a", "value": math.nan}]}, "scores.0.value", "finite"),
        ({"outcome": "ok"}, "outcome", "passed"),
        ({"scenario_id": ""}, "scenario_id", "at least 1"),
        ({"schema_version": "2"}, "schema_version", "'1'"),
        ({"scenario": "x"}, "scenario", "Extra"),
        ({"trajectory": {"turns": [{"role": "agent"}]}}, "trajectory.turns.0.role", "assistant"),
    ],
)
def test_what_is_wrong_is_named_with_its_key(change, where, what):
    with pytest.raises(ValidationError) as caught:
        Episode.from_any({"scenario_id": "a", **change})
    problems = {".".join(map(str, e["loc"])): e["msg"] for e in caught.value.errors()}
    assert where in problems
    assert what in problems[where]


amounts = st.floats(min_value=0, max_value=1e12, allow_nan=False)
statistics = st.sampled_from(["p50", "p90", "p95", "p99", "max", "mean", "total"])


@given(
    statistic=statistics,
    used=st.none() | amounts,
    limit=amounts,
    custom=st.dictionaries(st.text(min_size=1), amounts, max_size=3),
    content=st.text(),
)
def test_any_episode_survives_the_round_trip(statistic, used, limit, custom, content):
    read = episode(
        trajectory={"turns": [turn(content, tool_calls=[tool_call(result=content)])]},
        budgets={"latency_ms": {statistic: used, "limit": limit}, "custom": custom},
    )
    text = canonical_json(read)
    text.encode("ascii")  # nothing in it depends on an encoding
    assert Episode.model_validate_json(text) == read


@each_row("tokens", [10**400, 2**53 + 1])
def test_numbers_that_no_reader_keeps_are_refused(tokens):
    with pytest.raises(ValidationError):
        episode(trajectory={"turns": [turn(tokens={"input": tokens})]})


@each_row(
    ("columns", "problem"),
    [
        ({"a": 10**400}, "a: must be a text, a boolean, a finite number or an integer up to 2^53"),
        ({"a": -(2**53) - 1}, "a: must be a text, a boolean, a finite number or an integer up to"),
        ({"a": None}, "a: must be a text, a boolean, a finite number or an integer up to 2^53"),
        ({"a": math.inf}, "a: must be a text, a boolean, a finite number or an integer up to"),
        ({"a": "x" * 401}, "a: must have at most 400 characters"),
        ({"a" * 81: 1}, "String should have at most 80 characters"),
        ({"": 1}, "must be one line of text"),
        ({"a\x1b": 1}, "must be one line of text"),
        ({"a\u2028b": 1}, "must be one line of text"),
        ({f"a{n}": 1 for n in range(21)}, "Dictionary should have at most 20 items"),
    ],
)
def test_columns_have_limits(columns, problem):
    with pytest.raises(ValidationError) as caught:
        Episode(scenario_id="s", columns=columns)
    assert problem in describe_validation_error(caught.value)
