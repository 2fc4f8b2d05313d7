"""What a reader of another tool's results is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from ci_agent_eval.contract.findings import FindingKind

ToolDocument = Mapping[str, Any]
"""A JSON object as it was parsed: nothing in it is sure to have the shape that it should."""

EpisodeData = dict[str, Any]
"""The fields of an episode, as an episode file would hold them; the contract checks them."""


class ImportProblem(NamedTuple):
    """Something about the file that its reader must know."""

    message: str
    """One sentence, after "it": what it is, then what to do."""
    kind: FindingKind = "unreadable_file"


class Importer(Protocol):
    """Reads the results of one tool; what a file does not say stays unmeasured."""

    @property
    def tool(self) -> str:
        """What the tool is called, with the option or file where that is needed."""
        ...

    def can_import(self, document: ToolDocument) -> bool:
        """Say by its keys whether a document is of this tool, whatever its version."""
        ...

    def episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield what it holds, the same for any order in which the tool may have written it."""
        ...
