"""Data types of parsed shell text: words, commands, nested scripts and scopes."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace

from ci_agent_eval.steering.policy.model import Shell

_SUFFIX = re.compile(r"\.(exe|cmd|bat|com|ps1)$")


@dataclass(frozen=True, slots=True)
class Word:
    """One expanded word.

    If its value is unknown until the shell runs, `text` is the source text (`$FILES`) and
    `known` is False.
    """

    text: str
    known: bool = True

    @property
    def source_text(self) -> str:
        """The word as source text, quoted where needed."""
        return shlex.quote(self.text) if self.known else self.text


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One simple command: its words, its own assignments, and its standard input."""

    words: tuple[Word, ...]
    environment: tuple[tuple[str, Word], ...] = ()
    stdin: str | None = None

    def with_words(self, words: tuple[Word, ...]) -> ShellCommand:
        """Return the command that this one starts, with the same environment and input."""
        return replace(self, words=words)

    @property
    def command_line(self) -> str:
        """The command on one line."""
        return " ".join(word.source_text for word in self.words)


@dataclass(frozen=True, slots=True)
class ShellScript:
    """A shell text that a command runs, with its parameters."""

    text: str
    shell: Shell = "bash"
    parameters: tuple[Word, ...] = ()
    same_shell: bool = False
    """Whether it uses the variables of the calling shell, like `eval`."""
    stdin: str | None = None


@dataclass(frozen=True, slots=True)
class PythonCode:
    """Python code that a command runs, with its arguments."""

    text: str
    parameters: tuple[Word, ...] = ()


@dataclass(slots=True)
class ReadingLimits:
    """Remaining limits of reading, which bound the time for any text."""

    steps: int = 20_000
    """Nodes of syntax trees."""
    characters: int = 300_000
    calls: int = 60
    """Functions, aliases and nested texts."""
    rounds: int = 60
    """Loop rounds that are read one by one; further values are read in one round."""
    syntax_errors: int = 4
    """Texts with syntax errors, which are slow to parse."""
    depth: int = 120
    """Nodes within each other, of all texts; more would overflow Python's stack."""
    is_incomplete: bool = False
    """Whether a text was too long for its grammar, or too deep."""

    def spend(self, text: str) -> bool:
        """Count a nested text; return whether the limits allow reading it."""
        self.calls -= 1
        self.characters -= len(text)
        return self.calls >= 0 and self.characters >= 0

    @property
    def is_spent(self) -> bool:
        """Whether some text was not read."""
        return (
            self.is_incomplete
            or min(self.steps, self.characters, self.calls, self.syntax_errors) <= 0
        )


@dataclass(slots=True)
class ShellScope:
    """The mutable state of a shell while its text is read."""

    limits: ReadingLimits = field(default_factory=ReadingLimits)
    variables: dict[str, tuple[Word, ...]] = field(default_factory=dict)
    functions: dict[str, object] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Contents of the files written by the text, by name."""
    parameters: tuple[Word, ...] = ()
    directory: str | None = "."
    """The working directory relative to the initial one; None if unknown."""
    stdin: str | None = None

    def record_file(self, name: str, text: str) -> None:
        """Record the content of a file written by the text."""
        self.files[name.removeprefix("./")] = text

    def get_file(self, name: str) -> str | None:
        """Return the content of a file written by the text; None for other files."""
        return self.files.get(name.removeprefix("./"))

    def get_variable(self, name: str) -> tuple[Word, ...] | None:
        """Return a variable's words; None if they are unknown or the limits are exceeded."""
        words = self.variables.get(name)
        self.limits.characters -= sum(len(word.text) + 1 for word in words or ())
        return words if self.limits.characters > 0 else None

    def create_child(self, script: ShellScript) -> ShellScope:
        """Return the scope of a shell that this shell starts."""
        return ShellScope(
            self.limits,
            dict(self.variables),
            dict(self.functions),
            dict(self.aliases),
            self.files,
            script.parameters,
            self.directory,
            script.stdin,
        )


def get_program_name(word: Word) -> str:
    """Return a program's name without its folder and `.exe`."""
    return _SUFFIX.sub("", word.text.replace("\\", "/").rsplit("/", 1)[-1].casefold())


def make_words(*texts: str) -> tuple[Word, ...]:
    """Return texts as known words."""
    return tuple(Word(text) for text in texts)
