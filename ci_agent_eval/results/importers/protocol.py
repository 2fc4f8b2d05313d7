"""The interface of importers for other tools' results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.contract.findings import FindingKind

ToolDocument = Mapping[str, Any]
"""A parsed JSON object of unknown structure."""

EpisodeData = dict[str, Any]
"""The fields of an episode, as in an episode file; the contract validates them."""


ScoreRule = Literal["binary", "thresholds", "none"]
"""The scores that are verdicts: those with a threshold, and for `binary` those that are all 0 or 1.

`none`: the episodes are our own, and their scores inform.
"""


class ImportProblem(NamedTuple):
    """A problem of an imported file."""

    message: str
    """The sentence after "it": the problem, then the advice."""
    kind: FindingKind = "unreadable_file"


ImportedItem = EpisodeData | ImportProblem | JUnitCase
"""An item of a file: an episode, a test that is none, or a problem."""


class Importer(Protocol):
    """Imports the results of one tool; figures that are not in the file stay unmeasured."""

    @property
    def tool(self) -> str:
        """The tool's name, with the option or file if needed."""
        ...

    @property
    def score_rule(self) -> ScoreRule:
        """The rule for scores; an episode without an outcome is judged by it."""
        ...

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether a document's keys are this tool's, in any version."""
        ...

    def iterate_episodes(self, document: ToolDocument) -> Iterator[ImportedItem]:
        """Yield the episodes, tests and problems of a document, in a reproducible order."""
        ...
