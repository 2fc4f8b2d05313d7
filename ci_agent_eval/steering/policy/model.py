"""The words of steering: a tool call, what was found in it, and the decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Shell = Literal["bash", "powershell", "cmd"]

SuiteCounter = Callable[[tuple[str, ...]], int | None]
"""How many tests pytest would collect with these arguments; None: not known."""


ShellTools = Mapping[str, tuple[str, ...]]
"""Names of tools, in any case, with the names of their arguments that hold a command."""


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """A call of a tool by an agent, as it came: nothing in it can be trusted.

    `arguments` is whatever JSON gives: a string (perhaps itself JSON), an object, a list; or a
    tuple, from Python.
    """

    tool: str
    arguments: object


@dataclass(frozen=True, slots=True)
class DetectionResult:
    """What a command would do, and why we say so.

    `full_suite` implies `pytest`. `command` is the one command that decided, as it was
    understood (words joined by single blanks, quoted where needed); None if there is none.
    `normal` identifies the whole call's text whatever its spacing and quoting: the same command
    sent again is recognised by it.
    """

    pytest: bool
    full_suite: bool
    reason: str
    command: str | None = None
    normal_form: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """The optional rules, all off by default.

    `aliases`: commands (words separated by blanks, such as `make test`) that count as a full
    run. `max_collected`: a targeted run that `count` says has more tests than this is full.
    `shell_tools`: further tools that run bash, with the names of the arguments that hold the
    command; without names, those of the tools that are known.
    """

    bare_directory_is_full: bool = False
    aliases: tuple[str, ...] = ()
    max_collected: int | None = None
    count: SuiteCounter | None = None
    shell_tools: ShellTools = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""

    reason: str


@dataclass(frozen=True, slots=True)
class Steer:
    """The call is held back, and `message` is what the agent gets in place of its result."""

    message: str
    reason: str
    handler: str
    command: str | None = None


Decision = Allow | Steer
