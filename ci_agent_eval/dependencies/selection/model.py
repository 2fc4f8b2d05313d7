"""The selection: which scenarios a change can have affected, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ci_agent_eval.contract.dependencies import UnknownCause

FullRunCause = Literal[
    "requested",
    "no_dependencies",
    "incomplete",
    "unclean",
    "other_recorder",
    "expired",
    "no_commit",
    "file_added",
    "file_removed",
    "configuration",
    "environment",
    "event",
    "schedule",
    "untrusted",
]
"""Why everything runs. `no_dependencies`: the baseline recorded none; `unclean`: its files were
not those of its commit; `no_commit`: git does not have the commit here; `untrusted`: the change can
have written the baseline."""

ChangeKind = Literal[
    "function",
    "definitions",
    "module",
    "file",
    "folder",
    "absent_file",
    "declared_file",
    "variable",
]
"""What changed. `definitions`: a Python file outside of its functions' bodies."""

EarlierProblem = Literal["failed", "flaky", "inconclusive", "new", "no_dependencies"]
"""Why a scenario runs whatever changed."""


@dataclass(frozen=True, slots=True)
class FullRun:
    """A reason to run everything."""

    cause: FullRunCause
    detail: str = ""
    """The file, setting or commit, if there is one."""


@dataclass(frozen=True, slots=True)
class ChangedDependency:
    """A dependency of a scenario that changed."""

    kind: ChangeKind
    path: str
    """The file, relative to the repository root; the name of a variable."""
    name: str = ""
    """The function, if it is one."""


@dataclass(frozen=True, slots=True)
class UnseenDependency:
    """Something whose changes cannot be seen, while the repository changed."""

    cause: UnknownCause
    detail: str


SelectionReason: TypeAlias = ChangedDependency | UnseenDependency | EarlierProblem


@dataclass(frozen=True, slots=True)
class SelectedScenario:
    """A scenario that must run, with the first reason found."""

    scenario_id: str
    reason: SelectionReason


@dataclass(frozen=True, slots=True)
class Selection:
    """The scenarios of the baseline, in two groups; any other scenario is new, and runs."""

    selected: tuple[SelectedScenario, ...] = ()
    unchanged: tuple[str, ...] = ()
    """Scenarios whose earlier results can be carried over; empty if everything runs."""
    full_run: FullRun | None = None
