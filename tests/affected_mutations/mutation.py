"""Mutations as data: edits of files, of the environment and of Git."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

OUTSIDE = "@"
"""Begins the path of a file outside of the repository: `@site/ratecard.py`."""


class Edit(Protocol):
    """A change of one file; its path is relative to the repository."""

    path: str

    def apply(self, file: Path) -> None:
        """Change the file."""


@dataclass(frozen=True)
class Replace:
    """Replace a text that occurs exactly once."""

    path: str
    old: str
    new: str

    def apply(self, file: Path) -> None:
        text = file.read_text("utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.path} contains {text.count(self.old)} times {self.old!r}")
        file.write_text(text.replace(self.old, self.new), "utf-8")


@dataclass(frozen=True)
class Append:
    """Append a text."""

    path: str
    text: str

    def apply(self, file: Path) -> None:
        file.write_text(file.read_text("utf-8") + self.text, "utf-8")


@dataclass(frozen=True)
class Write:
    """Write a file, and create its folder."""

    path: str
    text: str

    def apply(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.text, "utf-8")


@dataclass(frozen=True)
class Delete:
    """Delete a file or a folder."""

    path: str

    def apply(self, file: Path) -> None:
        if file.is_dir():
            shutil.rmtree(file)
        else:
            file.unlink()


@dataclass(frozen=True)
class Rename:
    """Rename a file within its folder."""

    path: str
    name: str

    def apply(self, file: Path) -> None:
        file.rename(file.with_name(self.name))


@dataclass(frozen=True)
class Link:
    """Make a file a symbolic link."""

    path: str
    target: str

    def apply(self, file: Path) -> None:
        file.unlink(missing_ok=True)
        file.symlink_to(self.target)


@dataclass(frozen=True)
class Mode:
    """Change the permissions of a file."""

    path: str
    mode: int

    def apply(self, file: Path) -> None:
        file.chmod(self.mode)


@dataclass(frozen=True)
class Sql:
    """Execute a statement in a database."""

    path: str
    statement: str

    def apply(self, file: Path) -> None:
        with closing(sqlite3.connect(file)) as database, database:
            database.executescript(self.statement)


@dataclass(frozen=True)
class Mutation:
    """A change of the project whose effect on every scenario is measured."""

    name: str
    kind: str
    edits: tuple[Edit, ...] = ()
    environ: Mapping[str, str | None] = field(default_factory=dict)
    """Environment variables to set; None removes one."""
    git: tuple[str, ...] = ()
    """Commands of Git in the copy, after the commit, such as `config core.autocrlf true`."""
    is_control: bool = False
    """No scenario's behaviour changes."""
    hub: bool = False
    """The changed file is one that everything imports."""
    committed: bool = True
    shallow: bool = False
    """The copy does not contain the baseline's commit."""
    blind_spot: str = ""
    """Why the product cannot see this change, by decision; what it misses is shown apart."""
    removes: frozenset[str] = frozenset()
    """Scenarios that the mutation takes away, which nothing can select."""

    @property
    def is_outside(self) -> bool:
        """Whether files are changed that all copies of the project share."""
        return any(edit.path.startswith(OUTSIDE) for edit in self.edits)

    @property
    def is_cold(self) -> bool:
        """Whether what the interpreter itself reads or imports may change."""
        new_module = any(
            isinstance(edit, Write) and edit.path.endswith(".py") for edit in self.edits
        )
        return (
            self.is_outside
            or new_module
            or any(name.startswith(("PYTHON", "PYTEST", "TZ", "HOME")) for name in self.environ)
        )


def mutate(kind: str, name: str, *edits: Edit, hub: bool = False) -> Mutation:
    """Return a mutation of files."""
    return Mutation(name, kind, edits, hub=hub)


def change_module(
    kind: str, name: str, module: str, old: str, new: str, *, hub: bool = False
) -> Mutation:
    """Return a mutation of one place in a module of `shopdesk`."""
    return mutate(kind, name, Replace(f"shopdesk/{module}.py", old, new), hub=hub)


def control(kind: str, name: str, *edits: Edit, hub: bool = False) -> Mutation:
    """Return a mutation of files that changes no behaviour."""
    return Mutation(name, kind, edits, is_control=True, hub=hub)
