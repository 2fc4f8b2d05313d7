"""The importers of other tools' formats, in the order in which they are tried.

Those of installed packages come last. Their code can do anything: whatever it raises is a problem
of the file, and the episodes that it returns are validated like episodes of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from ci_agent_eval.results.importers import (
    ctrf,
    deepeval,
    inspect_ai,
    promptfoo,
    pydantic_evals,
)
from ci_agent_eval.results.importers.values import (
    EpisodeData,
    Importer,
    ImportProblem,
    ScoreRule,
    ToolDocument,
)
from ci_agent_eval.results.json_text import MalformedError

BUILT_IN: dict[str, Importer] = {
    "promptfoo": promptfoo.IMPORTER,
    "inspect-ai": inspect_ai.IMPORTER,
    "deepeval": deepeval.IMPORTER,
    "pydantic-evals": pydantic_evals.IMPORTER,
    "ctrf": ctrf.IMPORTER,
}

TOOLS = "promptfoo, inspect_ai, DeepEval, pydantic-evals and CTRF reporters"
"""The names of all tools, for a sentence."""

_OWN_KEYS = frozenset({"scenario_id", "episode", "episodes"})
_SCORE_RULES: tuple[ScoreRule, ...] = ("thresholds", "binary")


def build_document(value: object, name: str) -> dict[str, Any] | None:
    """Return an object as it is, a list of objects as a document of records, else None."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return {"records": value, "name": name}
    return None


def find_importer(value: object, name: str) -> tuple[Importer, dict[str, Any]] | None:
    """Return the importer of a parsed file, found by its content, and the document for it.

    None: unknown format. Records are an object on each line, or a list of objects. Raises
    MalformedError if an importer is broken, or if several recognize the file.
    """
    document = build_document(value, name)
    if document is None:
        return None
    for importer in BUILT_IN.values():
        if importer.can_import(document):
            return importer, document
    first = value[0] if isinstance(value, list) else document
    return None if _OWN_KEYS & first.keys() else _find_installed(document)


def _find_installed(document: dict[str, Any]) -> tuple[Importer, dict[str, Any]] | None:
    try:
        titled = [_load_importer(name) for name in list_extensions(IMPORTERS)]
        found = [(title, one) for title, one in titled if one.can_import(document)]
    except InputError as error:
        raise MalformedError(f"it is not a result file of a known tool, and {error}") from None
    if len(found) > 1:
        titles = " and ".join(title for title, _ in found)
        raise MalformedError(f"it is recognized by {titles}; uninstall all but one")
    return (found[0][1], document) if found else None


def _load_importer(name: str) -> tuple[str, Importer]:
    """Return the importer of an installed package with its title. Raises InputError."""
    extension = load_extension(IMPORTERS, name)
    if extension is None:
        raise InputError(f"{IMPORTERS} {name!r} was uninstalled meanwhile; run it again")
    importer = extension.create()
    rule: ScoreRule = getattr(importer, "score_rule", _SCORE_RULES[0])
    methods = ("can_import", "iterate_episodes")
    if not all(callable(getattr(importer, method, None)) for method in methods):
        raise extension.build_error("is not an importer: it lacks can_import or iterate_episodes")
    if rule not in _SCORE_RULES:
        raise extension.build_error(f"has no known score_rule: use {' or '.join(_SCORE_RULES)}")
    return extension.title, Importer(
        str(getattr(importer, "tool", extension.title)),
        rule,
        _guard_recognition(importer, extension),
        _guard_reading(importer, extension),
    )


def _guard_recognition(importer: Any, extension: Extension) -> Callable[[ToolDocument], bool]:
    def can_import(document: ToolDocument) -> bool:
        """Return whether it recognizes the document. Raises InputError if it fails."""
        try:
            return bool(importer.can_import(document))
        except EXTENSION_ERRORS as error:
            raise extension.build_error("failed", error) from None

    return can_import


def _guard_reading(
    importer: Any, extension: Extension
) -> Callable[[ToolDocument], Iterator[EpisodeData | ImportProblem]]:
    def iterate_episodes(document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield the episodes that it returns, as data; a failure of its code is a problem."""
        try:
            for number, item in enumerate(importer.iterate_episodes(document)):
                try:
                    yield _validate_item(item)
                except ValueError as error:  # pydantic's
                    sentence = describe_validation_error(error)
                    yield _build_problem(
                        extension, f"returned an invalid result {number}: {sentence}"
                    )
        except EXTENSION_ERRORS as error:
            yield _build_problem(extension, "failed", error)

    return iterate_episodes


def _build_problem(
    extension: Extension, problem: str, error: BaseException | None = None
) -> ImportProblem:
    return ImportProblem(f"cannot be read: {extension.build_error(problem, error)}")


def _validate_item(item: object) -> EpisodeData:
    """Return the fields that were given, as plain data. Raises pydantic's ValidationError."""
    # An Episode may have been built without validation.
    if isinstance(item, Episode):
        item = item.model_dump(exclude_unset=True, warnings=False)
    return Episode.model_validate(item).model_dump(mode="json", exclude_unset=True)
