"""Data types of steering: tool call requests, detection results, rules and decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Shell = Literal["bash", "powershell", "cmd"]


@dataclass(frozen=True, slots=True)
class PytestProject:
    """A folder's project: absolute paths with `/` of the folder, its root and its `testpaths`.

    `testpaths` is empty unless the folder is the root, as pytest ignores it elsewhere.
    """

    folder: str
    root: str
    testpaths: tuple[str, ...] = ()


ProjectFinder = Callable[[str], PytestProject | None]
"""Returns the project of a command's folder; None if there is no such folder."""


BareDirectory = Literal["targeted", "covers_testpaths", "full"]
"""How a run of directories alone counts; `covers_testpaths`: full if they contain all of them."""


ShellTools = Mapping[str, tuple[str, ...]]
"""Names of tools, in any case, with the names of the arguments that contain the command."""


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """An agent's unvalidated request to call a tool.

    `arguments` is any JSON value: a string (possibly JSON itself), an object, a list; or a
    tuple, from Python.
    """

    tool: str
    arguments: object


@dataclass(frozen=True, slots=True)
class RunIntent:
    """The tests that a command would run, whatever its spelling.

    `runner` is `pytest` or an alias. `folder` is the project's root, if known, else the working
    folder, relative to the initial one unless it is absolute; None if unknown. `selection` has the
    sorted arguments that select tests; it is empty for a run of all tests. Options that select
    nothing (`-q`, `-n 4`) have no effect.
    """

    runner: str
    folder: str | None
    selection: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DetectionResult:
    """Whether a command runs pytest and the full suite, with the reason.

    `full_suite` implies `pytest`; `targeted` means that a part of the tests runs. `command` is the
    deciding command as parsed (words joined by single blanks, quoted where needed); None if there
    is none. `intents` are those of all full runs, in the order they start.
    """

    pytest: bool
    full_suite: bool
    reason: str
    command: str | None = None
    intents: tuple[RunIntent, ...] = ()
    targeted: bool = False


Arity = Literal["0", "1", "2", "?", "+"]
"""How many values an option takes; `?`: the next word unless it is an option."""

OptionStyle = Literal["posix", "argparse", "go", "java"]
"""`posix`: short options cluster. `argparse`: like it, and no value looks like an option. `go`: one
dash or two. `java`: no clusters, attached values."""


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
    arities: Mapping[str, Arity] = field(default_factory=dict, hash=False)
    """The options with their numbers of values."""
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


@dataclass(frozen=True, slots=True)
class Rules:
    """The optional rules, all off by default.

    `bare_directory`: how a run of directories alone counts; `covers_testpaths` has an effect only
    with `find_project`. `find_project` also makes runs in all folders of a project one intent.
    `aliases`: commands (words separated by blanks, such as `make test`) that count as full
    runs. `shell_tools`: further tools that run bash, with the names of the arguments that contain
    the command; without names, the argument names of the known tools apply. `runners`: programs of
    other test runners whose full runs count.
    """

    bare_directory: BareDirectory = "targeted"
    aliases: tuple[str, ...] = ()
    find_project: ProjectFinder | None = None
    shell_tools: ShellTools = field(default_factory=dict, hash=False)
    runners: tuple[RunnerProgram, ...] = ()

    @property
    def commands(self) -> tuple[str, ...]:
        """Commands besides pytest that may count as full runs, for the fast filter."""
        return (*self.aliases, *(each for program in self.runners for each in program.mentions))


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""

    reason: str


@dataclass(frozen=True, slots=True)
class Steer:
    """The call is not run; the agent gets `message` instead of its result."""

    message: str
    reason: str
    handler: str
    command: str | None = None


Decision = Allow | Steer
