"""What the loader found out about the files themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing a reader of the report must know about the files it was made from."""

    kind: FindingKind
    where: str
    """The file (and line or node id) it was found in, relative to the root."""
    message: str
    """One sentence: what it is, and what to do where something can be done."""
    blocking: bool = True
    """A blocking finding fails the gate."""


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
