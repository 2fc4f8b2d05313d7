"""The uses that one process of a run has seen, and their JSON for the main process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ci_agent_eval.contract.dependencies import DependencyUnit
from ci_agent_eval.dependencies.recording.accesses import Access
from ci_agent_eval.dependencies.recording.places import Function


@dataclass(frozen=True, slots=True)
class ScenarioPart:
    """A scenario's episodes in one process."""

    functions: frozenset[Function] = frozenset()
    accesses: frozenset[Access] = frozenset()
    test_files: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    requests: frozenset[str] = frozenset()

    def __or__(self, other: ScenarioPart) -> ScenarioPart:
        names = (one.name for one in fields(ScenarioPart))
        return ScenarioPart(*(getattr(self, name) | getattr(other, name) for name in names))


@dataclass(frozen=True, slots=True)
class ProcessPart:
    """The episodes of a process, and what all of them depend on."""

    unit: DependencyUnit
    complete: bool
    """Whether the functions were watched to the end."""
    modules: tuple[tuple[str, str, str], ...] = ()
    """Name, package and file of each loaded module of the project."""
    outside_modules: tuple[tuple[str, str], ...] = ()
    """Name and file of each loaded module that is neither in the repository nor installed."""
    shared: ScenarioPart = ScenarioPart()
    imports: dict[str, ScenarioPart] = field(default_factory=dict)
    """What ran and was accessed while a module's body ran, by its file."""
    opened: tuple[tuple[Function, Access, bool], ...] = ()
    """Accesses by function, and whether an installed package made them."""
    written: frozenset[str] = frozenset()
    scenarios: dict[str, ScenarioPart] = field(default_factory=dict)


def dump_part(part: ProcessPart) -> str:
    """Return the JSON of a process's part."""
    return json.dumps(asdict(part), default=sorted, sort_keys=True)


def parse_part(text: str | bytes) -> ProcessPart:
    """Parse a process's part. Raises ValueError, KeyError or TypeError if it is none."""
    found: dict[str, Any] = json.loads(text)
    return ProcessPart(
        unit=found["unit"],
        complete=found["complete"] is True,
        modules=tuple((name, package, file) for name, package, file in found["modules"]),
        outside_modules=tuple((name, file) for name, file in found["outside_modules"]),
        shared=_parse_scenario(found["shared"]),
        imports={file: _parse_scenario(one) for file, one in found["imports"].items()},
        opened=tuple(
            ((file, name), (kind, detail), is_indirect)
            for (file, name), (kind, detail), is_indirect in found["opened"]
        ),
        written=frozenset(found["written"]),
        scenarios={name: _parse_scenario(one) for name, one in found["scenarios"].items()},
    )


def _parse_scenario(found: dict[str, Any]) -> ScenarioPart:
    return ScenarioPart(
        functions=frozenset((file, name) for file, name in found["functions"]),
        accesses=frozenset((kind, detail) for kind, detail in found["accesses"]),
        test_files=frozenset(found["test_files"]),
        patterns=frozenset(found["patterns"]),
        tools=frozenset(found["tools"]),
        requests=frozenset(found["requests"]),
    )
