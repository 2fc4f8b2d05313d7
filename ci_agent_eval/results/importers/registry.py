"""The importers of other tools' formats, in the order in which they are tried.

Those of installed packages come last. Their code can do anything: whatever it raises is a problem
of the file, and the episodes that it returns are validated like those of a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ci_agent_eval.config.entry_points import (
    EXTENSION_ERRORS,
    IMPORTERS,
    Extension,
    list_extensions,
    load_extension,
)
from ci_agent_eval.contract.base import describe_validation_error
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.importers.ctrf import CTRFImporter
from ci_agent_eval.results.importers.deepeval import DeepEvalImporter
from ci_agent_eval.results.importers.inspect_ai import InspectAIImporter
from ci_agent_eval.results.importers.promptfoo import PromptfooImporter, PromptfooLinesImporter
from ci_agent_eval.results.importers.protocol import (
    EpisodeData,
    Importer,
    ImportProblem,
    ScoreRule,
    ToolDocument,
)
from ci_agent_eval.results.importers.pydantic_evals import PydanticEvalsImporter
from ci_agent_eval.results.importers.values import build_document
from ci_agent_eval.results.json_text import MalformedError

BUILT_IN: dict[str, Importer] = {
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
    found = (importer for importer in BUILT_IN.values() if importer.can_import(document))
    return next(((importer, document) for importer in found), None)


_UNREADABLE = "cannot be read"
_SCORE_RULES: tuple[ScoreRule, ...] = ("thresholds", "binary")


def find_installed_importer(
    value: object, name: str
) -> tuple[InstalledImporter, dict[str, Any]] | None:
    """Return the importer that recognizes a parsed file, and the document for it.

    Raises MalformedError if an importer is broken, or if several recognize the file.
    """
    names = list_extensions(IMPORTERS)
    document = build_document(value, name) if names else None
    if document is None:
        return None
    try:
        found = [one for one in map(_load_importer, names) if one.can_import(document)]
    except InputError as error:
        raise MalformedError(f"it is not a result file of a known tool, and {error}") from None
    if len(found) > 1:
        titles = " and ".join(one.title for one in found)
        raise MalformedError(f"it is recognized by {titles}; uninstall all but one")
    return (found[0], document) if found else None


def _load_importer(name: str) -> InstalledImporter:
    extension = load_extension(IMPORTERS, name)
    if extension is None:
        raise InputError(f"{IMPORTERS} {name!r} was uninstalled meanwhile; run it again")
    return InstalledImporter(extension)


class InstalledImporter:
    """The importer of an installed package. Raises InputError if it is none."""

    def __init__(self, extension: Extension) -> None:
        self.title = extension.title
        self._extension = extension
        self._importer = extension.create()
        self.tool = str(getattr(self._importer, "tool", extension.title))
        self.score_rule: ScoreRule = getattr(self._importer, "score_rule", _SCORE_RULES[0])
        methods = ("can_import", "iterate_episodes")
        if not all(callable(getattr(self._importer, method, None)) for method in methods):
            raise extension.build_error(
                "is not an importer: it lacks can_import or iterate_episodes"
            )
        if self.score_rule not in _SCORE_RULES:
            raise extension.build_error(f"has no known score_rule: use {' or '.join(_SCORE_RULES)}")

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether it recognizes the document. Raises InputError if it fails."""
        try:
            return bool(self._importer.can_import(document))
        except EXTENSION_ERRORS as error:
            raise self._extension.build_error("failed", error) from None

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield the episodes that it returns, as data; a failure of its code is a problem."""
        try:
            for number, item in enumerate(self._importer.iterate_episodes(document)):
                yield self._convert_item(item, number)
        except EXTENSION_ERRORS as error:
            yield ImportProblem(f"{_UNREADABLE}: {self._extension.build_error('failed', error)}")

    def _convert_item(self, item: object, number: int) -> EpisodeData | ImportProblem:
        """Return the fields that were given, as plain data, or the problem of an invalid item."""
        # An Episode may have been built without validation.
        if isinstance(item, Episode):
            item = item.model_dump(exclude_unset=True, warnings=False)
        try:
            return Episode.model_validate(item).model_dump(mode="json", exclude_unset=True)
        except ValueError as error:  # pydantic's
            sentence = describe_validation_error(error)
            problem = self._extension.build_error(
                f"returned an invalid result {number}: {sentence}"
            )
            return ImportProblem(f"{_UNREADABLE}: {problem}")
