"""The JSON Schema that is checked in, and that it says what the models do."""

from __future__ import annotations

from pathlib import Path

import jsonschema

from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.contract.results import Results
from ci_agent_eval.contract.schema import build_contract_schema, render_schema
from tests.builders import failing
from tests.tables import each_row

CHECKED_IN = Path(__file__).parents[3] / "ci_agent_eval/contract/schema.json"


def test_the_checked_in_schema_is_what_the_models_say():
    assert CHECKED_IN.read_text() == render_schema(), "run `make golden`"


def validator(name):
    schema = build_contract_schema()
    return jsonschema.Draft202012Validator({"$defs": schema["$defs"], "$ref": f"#/$defs/{name}"})


@each_row(
    "budgets",
    [
        {"max_turns": 5},
        {"tool_calls": {"used": 3, "limit": 4}},
        {"latency_ms": {"p95": 1200, "limit": 2000}},
        {"latency_ms": {"used": 1200, "limit": 2000, "unit": "ms"}},
        {"latency_ms": {"mean": None, "limit": 2000, "hard": False}},
    ],
)
def test_every_form_of_a_budget_is_in_the_schema(budgets):
    assert validator("Episode").is_valid({"scenario_id": "a", "budgets": budgets})


@each_row(
    "budgets",
    [
        {"max_turn": 5},
        {"max_turns": -5},
        {"max_turns": {"used": 3}},
        {"latency_ms": {"p95": 1, "p50": 1, "limit": 2}},
    ],
)
def test_what_the_models_refuse_the_schema_refuses(budgets):
    assert not validator("Episode").is_valid({"scenario_id": "a", "budgets": budgets})


def test_written_results_are_valid_and_are_read_again():
    written = "".join(render_results("default", [canonical_json(failing())]))
    assert validator("Results").is_valid(
        Results.model_validate_json(written).model_dump(mode="json")
    )
    assert Results.model_validate_json(written).episodes == (failing(),)
