"""Convert recorded dependencies to the file's tables, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Generic, TypeVar

from ci_agent_eval.contract.dependencies import (
    Dependencies,
    DependencySet,
    FileVersion,
    FunctionName,
    ImportedFiles,
    NamedVersion,
    ScenarioDependencies,
    VariableVersion,
)
from ci_agent_eval.dependencies.model import Reached, RunDependencies

_K = TypeVar("_K", bound=tuple[str, str] | str)


def pack_dependencies(run: RunDependencies) -> Dependencies:
    """Return the file's content; equal runs give equal content."""
    sets = (run.shared, *run.scenarios.values())
    files = _KeyTable(_list_paths(run, sets))
    functions = _KeyTable(one for reached in sets for one in reached.functions)
    tables = _KeyTables(files, functions, _KeyTable(run.variables), _KeyTable(run.tools))
    return Dependencies(
        recorder=run.recorder,
        unit=run.unit,
        complete=run.complete,
        commit=run.commit,
        is_clean=run.is_clean,
        folder=run.folder,
        recorded_at=run.recorded_at,
        python=run.python,
        platform=run.platform,
        distributions=tuple(NamedVersion(*one) for one in sorted(run.distributions.items())),
        files=tuple(FileVersion(path, run.hashes.get(path)) for path in files.keys),
        functions=tuple(FunctionName(files.places[path], name) for path, name in functions.keys),
        imports=tuple(
            ImportedFiles(files.places[path], files.find_differences(imported))
            for path, imported in sorted(run.imports.items())
            if imported
        ),
        variables=tuple(
            VariableVersion(name, run.variables[name]) for name in tables.variables.keys
        ),
        tools=tuple(NamedVersion(name, run.tools[name]) for name in tables.tools.keys),
        shared=tables.pack_set(run.shared),
        scenarios=tuple(
            ScenarioDependencies(
                scenario_id=name, own=tables.pack_set(own), requests=run.requests.get(name)
            )
            for name, own in sorted(run.scenarios.items())
        ),
    )


def unpack_dependencies(document: Dependencies) -> RunDependencies:
    """Return the recorded run. Raises ValueError for an index that is in no table."""
    try:
        reader = _Reader(document)
        return RunDependencies(
            recorded_at=document.recorded_at,
            python=document.python,
            platform=document.platform,
            commit=document.commit,
            is_clean=document.is_clean,
            folder=document.folder,
            complete=document.complete,
            recorder=document.recorder,
            unit=document.unit,
            distributions=dict(document.distributions),
            hashes={path: digest for path, digest in document.files if digest is not None},
            imports={
                document.files[one.file].path: reader.read_paths(one.imported)
                for one in document.imports
            },
            variables=dict(document.variables),
            tools=dict(document.tools),
            shared=reader.read_set(document.shared),
            scenarios={one.scenario_id: reader.read_set(one.own) for one in document.scenarios},
            requests={
                one.scenario_id: one.requests
                for one in document.scenarios
                if one.requests is not None
            },
        )
    except IndexError:
        raise ValueError("an index is in no table") from None


def _list_paths(run: RunDependencies, sets: Iterable[Reached]) -> Iterator[str]:
    yield from run.hashes
    for path, imported in run.imports.items():
        yield path
        yield from imported
    for reached in sets:
        yield from reached.code_files
        yield from (*reached.files, *reached.folders, *reached.absent)


class _KeyTable(Generic[_K]):
    """Sorted distinct keys, with their places."""

    def __init__(self, keys: Iterable[_K]) -> None:
        self.keys: Sequence[_K] = sorted(set(keys))
        self.places: Mapping[_K, int] = {key: place for place, key in enumerate(self.keys)}

    def find_differences(self, keys: Iterable[_K]) -> tuple[int, ...]:
        """Return the differences of the sorted places of keys."""
        places = sorted(self.places[key] for key in keys)
        return tuple(after - before for before, after in pairwise([0, *places]))


@dataclass(frozen=True, slots=True)
class _KeyTables:
    files: _KeyTable[str]
    functions: _KeyTable[tuple[str, str]]
    variables: _KeyTable[str]
    tools: _KeyTable[str]

    def pack_set(self, reached: Reached) -> DependencySet:
        return DependencySet(
            functions=self.functions.find_differences(reached.functions),
            modules=self.files.find_differences(reached.modules),
            files=self.files.find_differences(reached.files),
            folders=self.files.find_differences(reached.folders),
            absent=self.files.find_differences(reached.absent),
            variables=self.variables.find_differences(reached.variables),
            tools=self.tools.find_differences(reached.tools),
            hosts=tuple(sorted(reached.hosts)),
            patterns=tuple(sorted(reached.patterns)),
            unknown=tuple(sorted(reached.unknown, key=lambda one: (one.cause, one.detail))),
        )


class _Reader:
    """Reads sets by the document's tables, each of whose entries is built once."""

    def __init__(self, document: Dependencies) -> None:
        self._paths = [one.path for one in document.files]
        self._functions = [(self._paths[one.file], one.name) for one in document.functions]
        self._variables = [one.name for one in document.variables]
        self._tools = [one.name for one in document.tools]

    def read_set(self, found: DependencySet) -> Reached:
        return Reached(
            functions=frozenset([self._functions[place] for place in accumulate(found.functions)]),
            modules=self.read_paths(found.modules),
            files=self.read_paths(found.files),
            folders=self.read_paths(found.folders),
            absent=self.read_paths(found.absent),
            variables=frozenset(self._variables[place] for place in accumulate(found.variables)),
            tools=frozenset(self._tools[place] for place in accumulate(found.tools)),
            hosts=frozenset(found.hosts),
            patterns=frozenset(found.patterns),
            unknown=frozenset(found.unknown),
        )

    def read_paths(self, differences: Iterable[int]) -> frozenset[str]:
        return frozenset(self._paths[place] for place in accumulate(differences))
