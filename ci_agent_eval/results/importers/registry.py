"""The formats of other tools that are read, in the order in which they are asked for."""

from __future__ import annotations

from ci_agent_eval.results.importers.deepeval import DeepEval
from ci_agent_eval.results.importers.inspect_ai import InspectAI
from ci_agent_eval.results.importers.opik import OpikArtifact, OpikExperiment
from ci_agent_eval.results.importers.promptfoo import Promptfoo
from ci_agent_eval.results.importers.protocol import Importer
from ci_agent_eval.results.importers.pydantic_evals import PydanticEvals
from ci_agent_eval.results.importers.skill_engineering import SkillEngineering

IMPORTERS: dict[str, Importer] = {
    "promptfoo": Promptfoo(),
    "inspect-ai": InspectAI(),
    "deepeval": DeepEval(),
    "pydantic-evals": PydanticEvals(),
    "opik-experiment": OpikExperiment(),
    "opik-artifact": OpikArtifact(),
    "pytest-skill-engineering": SkillEngineering(),
}

TOOLS = "promptfoo, inspect_ai, DeepEval, pydantic-evals, Opik and pytest-skill-engineering"
"""The tools, for a sentence."""


def importer_of(document: object) -> Importer | None:
    """Return who reads the document, told by its content alone; None where nobody does."""
    if not isinstance(document, dict):
        return None
    found = (importer for importer in IMPORTERS.values() if importer.recognizes(document))
    return next(found, None)
