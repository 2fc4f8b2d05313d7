"""The JSON Schema that is checked in, and that it says what the models do."""

from __future__ import annotations

from pathlib import Path

import jsonschema

from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.contract.results import Results
from ci_agent_eval.contract.schema import build_contract_schema, render_schema
from tests.builders import failing

CHECKED_IN = Path(__file__).parents[3] / "ci_agent_eval/contract/schema.json"


def test_the_checked_in_schema_is_what_the_models_say():
    assert CHECKED_IN.read_text() == render_schema(), "run `make golden`"


def validator(name):
    schema = build_contract_schema()
    return jsonschema.Draft202012Validator({"$defs": schema["$defs"], "$ref": f"#/$defs/{name}"})


def test_written_results_are_valid_and_are_read_again():
    written = "".join(render_results("default", [canonical_json(failing())]))
    assert validator("Results").is_valid(
        Results.model_validate_json(written).model_dump(mode="json")
    )
    assert Results.model_validate_json(written).episodes == (failing(),)
