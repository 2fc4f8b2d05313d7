"""The interface of importers for other tools' results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from ci_agent_eval.contract.findings import FindingKind

ToolDocument = Mapping[str, Any]
"""A parsed JSON object of unknown structure."""

EpisodeData = dict[str, Any]
"""The fields of an episode, as in an episode file; the contract validates them."""


class ImportProblem(NamedTuple):
    """A problem of an imported file."""

    message: str
    """The sentence after "it": the problem, then the advice."""
    kind: FindingKind = "unreadable_file"


class Importer(Protocol):
    """Imports the results of one tool; figures that are not in the file stay unmeasured."""

    @property
    def tool(self) -> str:
        """The tool's name, with the option or file if needed."""
        ...

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether a document's keys are this tool's, in any version."""
        ...

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield the episodes and problems of a document, independent of its internal order."""
        ...
