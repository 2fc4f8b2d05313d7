"""The JSON Schema of the files between the wings."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ci_agent_eval.contract.base import SCHEMA_VERSION
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.evaluation import EvaluationReport
from ci_agent_eval.contract.results import JournalLine, Results, Session

# Each is one kind of file or line between the wings, or for other programs to read.
DOCUMENTS: tuple[type[BaseModel], ...] = (
    Results,
    Episode,
    JournalLine,
    Session,
    EvaluationReport,
)


def build_contract_schema() -> dict[str, Any]:
    """Return one JSON Schema (2020-12): a document is any of the contract's files."""
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
    """Render the schema as it is checked in: indented, sorted, with a newline at the end."""
    return json.dumps(build_contract_schema(), indent=2, sort_keys=True) + "\n"
