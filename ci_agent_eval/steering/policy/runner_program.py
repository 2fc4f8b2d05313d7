"""The rules of a test runner's program. Pure; `steering/runners/` loads them from data files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

OptionStyle = Literal["posix", "go", "java"]
"""`posix`: short options cluster. `go`: one dash or two. `java`: no clusters, attached values."""


@dataclass(frozen=True, slots=True)
class RunnerProgram:
    """How a program's arguments select tests."""

    runner: str
    """The runner's name in the settings."""
    names: tuple[str, ...]
    """The program's names."""
    mentions: tuple[str, ...]
    """Groups of words; every text that starts the runner contains all words of a group."""
    example: str = ""
    """A command that runs selected tests, for a message."""
    commands: Mapping[str, str] = field(default_factory=dict, hash=False)
    """The subcommands that run tests (`*` is any word), with their reach without targets: `full`,
    `targeted` or `nothing`."""
    goals: frozenset[str] = frozenset()
    """If not empty, arguments are goals, and these run tests."""
    style: OptionStyle = "posix"
    valued: frozenset[str] = frozenset()
    """Options that take the next word."""
    optional: frozenset[str] = frozenset()
    """Options that take the next word unless it is an option."""
    narrowing: frozenset[str] = frozenset()
    """Options that select a part of the tests, unless their value says otherwise."""
    nothing: frozenset[str] = frozenset()
    """Options with which no test runs."""
    selecting: frozenset[str] = frozenset()
    """Options of a full run that change which tests it has."""
    whole: frozenset[str] = frozenset()
    """Targets that are all tests."""
    whole_values: frozenset[str] = frozenset()
    """Values with which a narrowing option selects all tests."""
    required: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Options with a pattern; a run of which no value matches runs no tests."""
    takes_targets: bool = True
    """Whether further words select tests; otherwise they are commands that run none."""
    passes_to: str = ""
    """The program that gets the words after `--`."""
    wrappers: frozenset[str] = frozenset()
    """Subcommands that run another program of the runner."""
