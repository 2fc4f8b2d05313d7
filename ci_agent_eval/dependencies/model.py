"""Recorded dependencies in memory: names in sets, without the tables of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

from ci_agent_eval.contract.dependencies import (
    RECORDER_VERSION,
    DependencyUnit,
    UnknownDependency,
)


@dataclass(frozen=True, slots=True)
class Reached:
    """Dependencies of one scenario or of all. Paths are relative to the repository root."""

    functions: frozenset[tuple[str, str]] = frozenset()
    """Functions that ran: the file, and the qualified name of the outermost function."""
    modules: frozenset[str] = frozenset()
    """Python files whose every part counts."""
    files: frozenset[str] = frozenset()
    """Files that were read, as bytes."""
    folders: frozenset[str] = frozenset()
    """Folders whose names were listed; `.` is the repository root."""
    absent: frozenset[str] = frozenset()
    """Paths at which a file was looked for, and was not there."""
    variables: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    """Names of tools that a model was offered."""
    hosts: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    """Patterns of files that its test declares."""
    unknown: frozenset[UnknownDependency] = frozenset()
    """Uses whose changes cannot be seen; with any, the scenario always runs."""

    def __or__(self, other: Reached) -> Reached:
        return Reached(
            *(getattr(self, one.name) | getattr(other, one.name) for one in fields(Reached))
        )

    def with_variables(self, names: Iterable[str]) -> Reached:
        """Return it with more variables."""
        return replace(self, variables=self.variables | frozenset(names))

    @property
    def code_files(self) -> frozenset[str]:
        """The Python files of its functions and modules."""
        return frozenset(path for path, _ in self.functions) | self.modules


@dataclass(frozen=True)
class RunDependencies:
    """The dependencies of a run's scenarios, and the conditions that it ran under."""

    recorded_at: int
    """When the run began, in seconds since 1970 (UTC)."""
    python: str
    platform: str
    commit: str | None = None
    is_clean: bool = False
    """Whether every tracked file was as in the commit, and no other file was there."""
    folder: str = "."
    """The folder that the suite ran in, relative to the repository root."""
    complete: bool = True
    recorder: int = RECORDER_VERSION
    unit: DependencyUnit = "function"
    distributions: Mapping[str, str] = field(default_factory=dict)
    """Hash of each installed distribution, by name."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each file's bytes on disk, by path."""
    imports: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The project's files that each Python file imports."""
    variables: Mapping[str, str | None] = field(default_factory=dict)
    """Hash of each variable's value; see `contract.dependencies.VariableVersion`."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """Hash of each offered tool's schema, by name."""
    shared: Reached = Reached()
    """Dependencies of every scenario."""
    scenarios: Mapping[str, Reached] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)
    """Hash of each scenario's requests to models."""

    def find_dependencies(self, scenario_id: str) -> Reached | None:
        """Return all dependencies of a scenario, without import closures; None: not recorded."""
        own = self.scenarios.get(scenario_id)
        return None if own is None else self.shared | own

    @cached_property
    def _importers(self) -> Mapping[str, set[str]]:
        """The files that import each file directly; every file of code has an entry."""
        found: dict[str, set[str]] = {path: set() for path in self._list_code()}
        for path, imported in self.imports.items():
            for one in imported:
                found.setdefault(one, set()).add(path)
        return found

    def _list_code(self) -> Iterator[str]:
        for reached in (self.shared, *self.scenarios.values()):
            yield from reached.code_files

    def list_absent(self) -> frozenset[str]:
        """Return all paths at which a file was looked for, and was not there."""
        return self.shared.absent.union(*(one.absent for one in self.scenarios.values()))

    def find_importers(self, path: str) -> frozenset[str] | None:
        """Return a Python file and all that import it, at any distance; None: it is none."""
        if path not in self._importers:
            return None
        found, pending = {path}, [path]
        while pending:
            new = self._importers.get(pending.pop(), set()) - found
            found |= new
            pending.extend(new)
        return frozenset(found)
