"""The importers of other tools' formats, in the order in which they are tried."""

from __future__ import annotations

from typing import Any

from ci_agent_eval.results.importers.ctrf import CTRFImporter
from ci_agent_eval.results.importers.deepeval import DeepEvalImporter
from ci_agent_eval.results.importers.inspect_ai import InspectAIImporter
from ci_agent_eval.results.importers.promptfoo import PromptfooImporter, PromptfooLinesImporter
from ci_agent_eval.results.importers.protocol import Importer
from ci_agent_eval.results.importers.pydantic_evals import PydanticEvalsImporter
from ci_agent_eval.results.importers.values import build_document

IMPORTERS: dict[str, Importer] = {
    "promptfoo": PromptfooImporter(),
    "inspect-ai": InspectAIImporter(),
    "deepeval": DeepEvalImporter(),
    "pydantic-evals": PydanticEvalsImporter(),
    "promptfoo-lines": PromptfooLinesImporter(),
    "ctrf": CTRFImporter(),
}

TOOLS = "promptfoo, inspect_ai, DeepEval, pydantic-evals and CTRF reporters"
"""The names of all tools, for a sentence."""


def find_importer(value: object, name: str = "") -> tuple[Importer, dict[str, Any]] | None:
    """Return the importer of a parsed file, found by its content, and the document for it.

    None: unknown format. Records are an object on each line, or a list of objects.
    """
    document = build_document(value, name)
    if document is None:
        return None
    found = (importer for importer in IMPORTERS.values() if importer.can_import(document))
    return next(((importer, document) for importer in found), None)
