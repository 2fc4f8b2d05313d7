"""`dependencies.json`: what each scenario of a run depends on, beside its results.

Names and hashes are in tables, and a scenario's set refers to them by index. A sorted list of
indexes is written as the differences of neighbours, which halves the file.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from pydantic import Field

from ci_agent_eval.contract.base import SCHEMA_VERSION, Count, FrozenModel, SchemaVersion

MAX_DEPENDENCIES_BYTES: Final = 64 * 1024 * 1024
"""Maximum size of the file; a larger one is not read."""

RECORDER_VERSION: Final = 1
"""Version of the recorder's rules; dependencies of another version select everything."""

DependencyUnit = Literal["function", "module"]
"""The smallest part of a Python file that a scenario depends on; Python 3.11 knows modules only."""

UnknownCause = Literal[
    "child_process",
    "host",
    "native_code",
    "outside_file",
    "symlink",
    "untracked_file",
    "unwatched",
]
"""Why a scenario has dependencies that were not observed."""


class UnknownDependency(FrozenModel):
    """Something that a scenario used and whose changes cannot be seen: it always runs."""

    cause: UnknownCause
    detail: str = ""


class FileVersion(NamedTuple):
    """A path relative to the repository root, with the SHA-256 of its bytes on disk."""

    path: str
    sha256: str | None = None
    """None: a folder, or a path at which there was no file."""


class FunctionName(NamedTuple):
    """A function of a file."""

    file: int
    """Index in `files`."""
    name: str
    """Qualified name of the outermost function, such as `Desk.refund`."""


class ImportedFiles(NamedTuple):
    """The project's files that a file imports."""

    file: int
    imported: tuple[int, ...]
    """Differences of sorted indexes in `files`."""


class VariableVersion(NamedTuple):
    """An environment variable."""

    name: str
    digest: str | None = None
    """SHA-256 of its value; `set` or `unset` for a name that looks secret; None: it was unset."""


class NamedVersion(NamedTuple):
    """A distribution or an offered tool, with a hash of its content."""

    name: str
    digest: str


Indexes = tuple[Count, ...]
"""Differences of sorted indexes in a table."""


class DependencySet(FrozenModel):
    """What one scenario, or each of them, depends on."""

    functions: Indexes = Field(default=(), description="functions that ran")
    modules: Indexes = Field(default=(), description="Python files whose every part counts")
    files: Indexes = Field(default=(), description="files that were read")
    folders: Indexes = Field(default=(), description="folders that were listed")
    absent: Indexes = Field(default=(), description="paths at which a file was looked for")
    variables: Indexes = ()
    tools: Indexes = Field(default=(), description="tools that a model was offered")
    hosts: tuple[str, ...] = Field(default=(), description="hosts that it connected to")
    patterns: tuple[str, ...] = Field(default=(), description="files declared by `depends_on`")
    unknown: tuple[UnknownDependency, ...] = ()


class ScenarioDependencies(FrozenModel):
    """The dependencies of all iterations of a scenario."""

    scenario_id: str = Field(min_length=1)
    own: DependencySet = Field(default_factory=DependencySet)
    requests: str | None = Field(
        default=None, description="hash of its requests to models; unset: none were seen"
    )


class Dependencies(FrozenModel):
    """The dependencies of a run's scenarios, and the conditions that it ran under."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    recorder: Count = RECORDER_VERSION
    unit: DependencyUnit = "function"
    complete: bool = Field(
        default=True, description="false: a process left no record, or the recorder was disabled"
    )
    commit: str | None = Field(default=None, description="the commit that was checked out")
    is_clean: bool = Field(
        default=False, description="every tracked file was as in the commit, and no other was there"
    )
    folder: str = Field(
        default=".", description="the folder that the suite ran in, relative to the repository root"
    )
    recorded_at: Count = Field(description="when the run began, in seconds since 1970 (UTC)")
    python: str
    platform: str
    distributions: tuple[NamedVersion, ...] = ()
    files: tuple[FileVersion, ...] = ()
    functions: tuple[FunctionName, ...] = ()
    imports: tuple[ImportedFiles, ...] = ()
    variables: tuple[VariableVersion, ...] = ()
    tools: tuple[NamedVersion, ...] = ()
    shared: DependencySet = Field(
        default_factory=DependencySet, description="dependencies of every scenario"
    )
    scenarios: tuple[ScenarioDependencies, ...] = ()
