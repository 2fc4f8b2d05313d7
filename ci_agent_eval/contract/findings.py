"""What the loader found out about the files themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ci_agent_eval.contract.suite_stop import SuiteStop

FindingKind = Literal[
    "no_results",  # nothing matched, or nothing was in what matched
    "unreadable_file",  # a result file that could not be read to its end
    "repaired_file",  # characters were replaced so that the rest could be read
    "declared_counts_differ",  # a suite declares other totals than its cases show
    "disagreement",  # JSON and JUnit of one run say different things
    "collection_error",  # pytest could not collect a file
    "interrupted",  # the run ended before its episodes did
    "stopped",  # the run was stopped at a budget of the suite
    "install_failed",  # the suite could not be set up
    "shared_scenario",  # two tests under one scenario id
    "shards",  # a shard is missing, doubled, or of another run
    "handover",  # what GitHub says of the run that left the results, and they do not
    "default_settings",  # no file of settings, where one may have been meant
    "duplicate",  # the same episode twice in different files
    "unused_entry",  # an entry of a file of agreements that is about nothing here
    "baseline",  # a baseline that was asked for and cannot be read, or not to its end
]


UPLOAD_ALL_SHARDS = (
    "let every job of the matrix upload its report folder, and report on all of one run"
)
"""What to do where the shards are not one whole run."""


@dataclass(frozen=True, slots=True)
class MissingShards:
    """Shards of a split that left no results."""

    indexes: tuple[int, ...]
    """1-based, in order."""
    total: int
    """Shards of the split."""
    type: Literal["missing_shards"] = "missing_shards"


@dataclass(frozen=True, slots=True)
class RepeatedShard:
    """A shard that left results more than once in the same attempt."""

    index: int
    total: int
    """Shards of the split."""
    times: int
    type: Literal["repeated_shard"] = "repeated_shard"


@dataclass(frozen=True, slots=True)
class StoppedRun:
    """A run that was stopped at a budget of its suite."""

    stop: SuiteStop
    selected: int | None
    """Episodes that were to run; None: not known."""
    left_out: int
    """Those of them that did not run; 0 if not known."""
    type: Literal["stopped_run"] = "stopped_run"


FindingData: TypeAlias = MissingShards | RepeatedShard | StoppedRun
"""Findings that other code looks into. `render/` makes a sentence of each."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a reader of the report must know about the files it was made from."""

    kind: FindingKind
    where: str
    """The file (and line or node id) it was found in, relative to the root."""
    message: str | FindingData
    """What it is, and what to do where something can be done.

    Data where any other code has to know what it says, else one sentence for people, into
    which no code looks. `render.sentences.finding_sentence` returns the sentence of both.
    """
    blocking: bool = True
    """A blocking finding fails the gate."""

    def __lt__(self, other: Finding) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[str, str, str, str, bool]:
        is_text = isinstance(self.message, str)
        text, data = (str(self.message), "") if is_text else ("", repr(self.message))
        return self.kind, self.where, text, data, self.blocking


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """One result file and what was counted in it, from its cases and never from its totals."""

    path: str
    kind: Literal["episodes", "junit"]
    cases: int = 0
    passed: int = 0
    failures: int = 0
    errors: int = 0
    skipped: int = 0
    readable: bool = True
