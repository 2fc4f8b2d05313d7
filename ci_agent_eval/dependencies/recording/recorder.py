"""The recorder of a process: attributes what runs to the episode that runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from ci_agent_eval.dependencies.recording.accesses import (
    Access,
    Accesses,
    ProcessAccesses,
)
from ci_agent_eval.dependencies.recording.file_accesses import FileWatch
from ci_agent_eval.dependencies.recording.functions import FunctionMonitor
from ci_agent_eval.dependencies.recording.part import ProcessPart, ScenarioPart
from ci_agent_eval.dependencies.recording.places import Function, Places
from ci_agent_eval.dependencies.recording.variables import VariableWatch

FindAccesses = Callable[[], "Accesses | None"]
"""Returns the accesses of the episode that runs in this context; None: none, or unknown which."""


class DependencyRecorder:
    """Watches a process from its start to the end of its session."""

    def __init__(
        self,
        places: Places,
        find_accesses: FindAccesses,
        environ: Mapping[str, str],
    ) -> None:
        self._places = places
        self._find_accesses = find_accesses
        self._process = ProcessAccesses()
        self._scenarios: dict[str, ScenarioPart] = {}
        self._fixtures: dict[str, Accesses] = {}
        self._fixture_names: dict[str, set[str]] = {}
        self._functions = FunctionMonitor(places, self._process, self._find_owner)
        self._files = FileWatch(places, self._process, self._find_owner)
        self._variables = VariableWatch(places, self._process, self._find_owner, environ)
        self._has_functions = False
        self._is_complete = True

    def start(self) -> None:
        """Start to watch."""
        self._has_functions = self._functions.start()
        self._files.start()
        self._variables.start()

    def stop(self) -> None:
        """Stop to watch."""
        self._variables.stop()
        self._files.stop()
        self._functions.stop()

    def _find_owner(self) -> Accesses:
        found = self._find_accesses()
        return self._process.shared if found is None or found.is_ended else found

    def end_episode(
        self,
        found: Accesses,
        scenario_id: str,
        *,
        test_file: str | None,
        fixtures: Iterable[str] = (),
        patterns: Iterable[str] = (),
        tools: Iterable[str] = (),
        requests: Iterable[str] = (),
    ) -> None:
        """Add an ended episode to its scenario.

        `fixtures` are the names of its fixtures, `requests` hashes of its requests to models.
        """
        if self._has_functions and not self._functions.is_watching():
            self._is_complete = False
        found.is_ended = True
        part = replace(
            _build_part(found),
            test_files=frozenset(() if test_file is None else (test_file,)),
            patterns=frozenset(patterns),
            tools=frozenset(tools),
            requests=frozenset(requests),
        )
        self._scenarios[scenario_id] = self._scenarios.get(scenario_id, ScenarioPart()) | part
        self._fixture_names.setdefault(scenario_id, set()).update(fixtures)

    def get_fixture(self, name: str) -> Accesses:
        """Return the accesses of the setups of a fixture that several tests share."""
        return self._fixtures.setdefault(name, Accesses())

    def share(self, found: Accesses) -> None:
        """Make everything that an episode did a dependency of every episode."""
        shared = self._process.shared
        shared.accesses |= found.accesses
        for function in found.hits:
            shared.hits.setdefault(function, 1)

    def build_part(self) -> ProcessPart:
        """Return what this process has seen."""
        outside_modules = tuple(sorted(self._list_outside_modules()))
        # Code that is no loaded module, such as an executed script: no import says who uses it.
        scripts = self._process.outside_code - {file for _, file in outside_modules}
        found = ScenarioPart(accesses=frozenset(("outside_file", path) for path in scripts))
        return ProcessPart(
            unit="function" if self._has_functions else "module",
            complete=self._is_complete,
            modules=tuple(self._list_modules()),
            outside_modules=outside_modules,
            shared=_build_part(self._process.shared) | found,
            imports={
                file: _build_part(found) for file, found in sorted(self._process.imports.items())
            },
            opened=tuple(self._list_opened()),
            written=frozenset(self._files.written),
            scenarios={name: self._add_fixtures(name) for name in self._scenarios},
        )

    def _add_fixtures(self, scenario_id: str) -> ScenarioPart:
        """Return a scenario's part with all setups of its shared fixtures."""
        part = self._scenarios[scenario_id]
        for name in self._fixture_names[scenario_id] & self._fixtures.keys():
            part |= _build_part(self._fixtures[name])
        return part

    def _list_opened(self) -> Iterator[tuple[Function, Access, bool]]:
        for function, found in sorted(self._process.opened.items()):
            for access, is_indirect in sorted(found.items()):
                yield function, access, is_indirect

    def _list_outside_modules(self) -> Iterator[tuple[str, str]]:
        """Yield name and file of each module that is neither in the repository nor installed."""
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and self._places.find_owner(file) == "outside":
                yield name, file

    def _list_modules(self) -> list[tuple[str, str, str]]:
        """Return name, package and file of each loaded module of the project."""
        found = []
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str):
                path = os.path.normpath(file)
                relative = self._places.find_relative(path)
                if relative is not None and self._places.find_owner(path) == "project":
                    package = getattr(module, "__package__", None) or ""
                    found.append((name, str(package), relative))
        return sorted(found)


def _build_part(found: Accesses) -> ScenarioPart:
    return ScenarioPart(frozenset(found.hits), frozenset(found.accesses))
