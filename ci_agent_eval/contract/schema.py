"""The JSON Schema of the contract's files."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ci_agent_eval.contract.base import SCHEMA_VERSION
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.evaluation import EvaluationReport
from ci_agent_eval.contract.results import Confirmation, JournalLine, Results, Session

# The root model of each kind of file or journal line.
DOCUMENTS: tuple[type[BaseModel], ...] = (
    Results,
    Episode,
    JournalLine,
    Session,
    EvaluationReport,
    Confirmation,
)


def build_contract_schema() -> dict[str, Any]:
    """Return one JSON Schema (2020-12) that accepts any of the contract's files."""
    names, definitions = models_json_schema(
        [(model, "validation") for model in DOCUMENTS],
        title=f"ci_agent_eval results, schema version {SCHEMA_VERSION}",
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **definitions,
        "anyOf": [names[(model, "validation")] for model in DOCUMENTS],
    }


def render_schema() -> str:
    """Render the checked-in schema: indented, sorted, with a final newline."""
    return json.dumps(build_contract_schema(), indent=2, sort_keys=True) + "\n"
