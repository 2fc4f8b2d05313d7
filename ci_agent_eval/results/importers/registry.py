"""The importers of other tools' formats, in the order in which they are tried."""

from __future__ import annotations

from typing import Any

from ci_agent_eval.results.importers.ctrf import CTRFImporter
from ci_agent_eval.results.importers.deepeval import DeepEvalImporter
from ci_agent_eval.results.importers.inspect_ai import InspectAIImporter
from ci_agent_eval.results.importers.lm_eval import (
    LMEvalResultsImporter,
    LMEvalSamplesImporter,
)
from ci_agent_eval.results.importers.openai_evals import OpenAIEvalsImporter
from ci_agent_eval.results.importers.opik import OpikArtifactImporter, OpikExperimentImporter
from ci_agent_eval.results.importers.promptfoo import PromptfooImporter, PromptfooLinesImporter
from ci_agent_eval.results.importers.protocol import Importer
from ci_agent_eval.results.importers.pydantic_evals import PydanticEvalsImporter
from ci_agent_eval.results.importers.ragas import RagasImporter
from ci_agent_eval.results.importers.records import build_document
from ci_agent_eval.results.importers.skill_engineering import SkillEngineeringImporter

IMPORTERS: dict[str, Importer] = {
    "promptfoo": PromptfooImporter(),
    "inspect-ai": InspectAIImporter(),
    "deepeval": DeepEvalImporter(),
    "pydantic-evals": PydanticEvalsImporter(),
    "opik-experiment": OpikExperimentImporter(),
    "opik-artifact": OpikArtifactImporter(),
    "pytest-skill-engineering": SkillEngineeringImporter(),
    "promptfoo-lines": PromptfooLinesImporter(),
    "lm-eval-results": LMEvalResultsImporter(),
    "lm-eval-samples": LMEvalSamplesImporter(),
    "openai-evals": OpenAIEvalsImporter(),
    "ragas": RagasImporter(),
    "ctrf": CTRFImporter(),
}

TOOLS = (
    "promptfoo, inspect_ai, DeepEval, pydantic-evals, Opik, pytest-skill-engineering, lm-eval, "
    "OpenAI evals, ragas and CTRF reporters"
)
"""The names of all tools, for a sentence."""


def find_importer(value: object, name: str = "") -> tuple[Importer, dict[str, Any]] | None:
    """Return the importer of a parsed file, found by its content, and the document for it.

    None: unknown format. Records are an object on each line, a list of objects, or a table.
    """
    document = build_document(value, name)
    if document is None:
        return None
    found = (importer for importer in IMPORTERS.values() if importer.can_import(document))
    return next(((importer, document) for importer in found), None)
