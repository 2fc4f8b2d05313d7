"""What one episode, or the rest of the process, ran and accessed."""

from __future__ import annotations

from dataclasses import dataclass, field

from ci_agent_eval.dependencies.recording.places import Accessor, Function

Access = tuple[str, str]
"""A kind (`file`, `folder`, `absent`, `variable`, `host`, or an `UnknownCause`), and a path
relative to the root, a name, or a detail."""


@dataclass(eq=False, slots=True)
class Accesses:
    """The functions that an episode ran, and its accesses to files, variables and hosts."""

    hits: dict[Function, int] = field(default_factory=dict)
    """Number of starts and resumptions of each function, up to the limit."""
    accesses: set[Access] = field(default_factory=set)
    has_import: bool = False
    """Whether a module of the project was imported in it."""
    is_ended: bool = False


@dataclass(eq=False, slots=True)
class ProcessAccesses:
    """The accesses of a process: of its episodes, of its imports, and all others."""

    shared: Accesses = field(default_factory=Accesses)
    """Accesses outside of episodes, or of an unknown one: dependencies of every episode."""
    imports: dict[str, Accesses] = field(default_factory=dict)
    """Accesses while a module's body ran, by its file: dependencies of all that import it."""
    opened: dict[Function, dict[Access, bool]] = field(default_factory=dict)
    """The accesses of each function, and whether an installed package made one for it."""
    outside_code: set[str] = field(default_factory=set)
    """Files from outside of the repository whose code ran."""

    def add(self, owner: Accesses, access: Access, accessor: Accessor) -> None:
        """Add an access of an episode, or of the shared ones."""
        if accessor.module is not None:
            self.get_import(accessor.module).accesses.add(access)
            return
        if accessor.function is not None:
            known = self.opened.setdefault(accessor.function, {})
            known[access] = known.get(access, False) or accessor.is_indirect
        elif accessor.tool is None:
            # A thread of an installed package: it may work for every episode.
            self.shared.accesses.add(access)
        owner.accesses.add(access)

    def get_import(self, file: str) -> Accesses:
        """Return the accesses of a module's body."""
        return self.imports.setdefault(file, Accesses())
