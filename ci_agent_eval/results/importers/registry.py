"""The importers of other tools' formats, in the order in which they are tried."""

from __future__ import annotations

from ci_agent_eval.results.importers.deepeval import DeepEvalImporter
from ci_agent_eval.results.importers.inspect_ai import InspectAIImporter
from ci_agent_eval.results.importers.opik import OpikArtifactImporter, OpikExperimentImporter
from ci_agent_eval.results.importers.promptfoo import PromptfooImporter
from ci_agent_eval.results.importers.protocol import Importer
from ci_agent_eval.results.importers.pydantic_evals import PydanticEvalsImporter
from ci_agent_eval.results.importers.skill_engineering import SkillEngineeringImporter

IMPORTERS: dict[str, Importer] = {
    "promptfoo": PromptfooImporter(),
    "inspect-ai": InspectAIImporter(),
    "deepeval": DeepEvalImporter(),
    "pydantic-evals": PydanticEvalsImporter(),
    "opik-experiment": OpikExperimentImporter(),
    "opik-artifact": OpikArtifactImporter(),
    "pytest-skill-engineering": SkillEngineeringImporter(),
}

TOOLS = "promptfoo, inspect_ai, DeepEval, pydantic-evals, Opik and pytest-skill-engineering"
"""The names of all tools, for a sentence."""


def find_importer(document: object) -> Importer | None:
    """Return the importer for a document, found by its content; None: unknown format."""
    if not isinstance(document, dict):
        return None
    found = (importer for importer in IMPORTERS.values() if importer.can_import(document))
    return next(found, None)
