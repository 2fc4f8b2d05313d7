"""What the readers of the shells hand over: words, commands, and the texts that run in turn."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace

from ci_agent_eval.steering.policy.model import Shell

_SUFFIX = re.compile(r"\.(exe|cmd|bat|com|ps1)$")


@dataclass(frozen=True, slots=True)
class Word:
    """One word as a program would get it.

    What only the running shell can know stays in `text` as it was written (`$FILES`), and
    `known` is False.
    """

    text: str
    known: bool = True

    @property
    def shown(self) -> str:
        """Return the word as it would be written, quoted where needed."""
        return shlex.quote(self.text) if self.known else self.text


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One simple command: its words, its own assignments, and the text it gets to read."""

    words: tuple[Word, ...]
    environment: tuple[tuple[str, Word], ...] = ()
    stdin: str | None = None

    def running(self, words: tuple[Word, ...]) -> ShellCommand:
        """Return the command that this one starts."""
        return replace(self, words=words)

    @property
    def shown(self) -> str:
        """Return the command on one line."""
        return " ".join(word.shown for word in self.words)


@dataclass(frozen=True, slots=True)
class ShellScript:
    """Shell text that a command runs, with the parameters it gets."""

    text: str
    shell: Shell = "bash"
    parameters: tuple[Word, ...] = ()
    same_shell: bool = False
    """It works on the variables of the shell that runs it, as `eval` does."""
    stdin: str | None = None


@dataclass(frozen=True, slots=True)
class PythonCode:
    """Python source that a command runs, with the arguments it gets."""

    text: str
    parameters: tuple[Word, ...] = ()


@dataclass(slots=True)
class ReadingLimits:
    """How much may still be read, so that no text, however made, takes long."""

    steps: int = 20_000
    """Nodes of syntax trees."""
    characters: int = 300_000
    calls: int = 60
    """Functions, aliases and inner texts."""
    rounds: int = 60
    """Rounds of loops that are read one by one; further values are read in one round."""
    broken: int = 4
    """Texts with errors of syntax, which are slow to read."""
    is_incomplete: bool = False
    """A text was too long for its grammar."""

    @property
    def spent(self) -> bool:
        """Say whether something was left unread."""
        return self.is_incomplete or min(self.steps, self.characters, self.calls, self.broken) <= 0


@dataclass(slots=True)
class ShellScope:
    """What a shell knows while it reads: the only thing here that changes."""

    limits: ReadingLimits = field(default_factory=ReadingLimits)
    variables: dict[str, tuple[Word, ...]] = field(default_factory=dict)
    functions: dict[str, object] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Files that the text itself wrote, by the names it gave them."""
    parameters: tuple[Word, ...] = ()
    directory: str | None = "."
    """Where it stands, seen from where it started; None when nobody can know."""
    stdin: str | None = None

    def write(self, name: str, text: str) -> None:
        """Remember what a file holds that the text itself wrote."""
        self.files[name.removeprefix("./")] = text

    def get_file(self, name: str) -> str | None:
        """Return what a file holds that the text itself wrote."""
        return self.files.get(name.removeprefix("./"))

    def value(self, name: str) -> tuple[Word, ...] | None:
        """Return what a variable holds; None if nobody knows, or if it has grown too long."""
        found = self.variables.get(name)
        self.limits.characters -= sum(len(word.text) + 1 for word in found or ())
        return found if self.limits.characters > 0 else None

    def inner(self, text: ShellScript) -> ShellScope:
        """Return the scope of a shell started by this one."""
        return ShellScope(
            self.limits,
            dict(self.variables),
            dict(self.functions),
            dict(self.aliases),
            self.files,
            text.parameters,
            self.directory,
            text.stdin,
        )


def get_program_name(word: Word) -> str:
    """Return the name of the program that a word names, without folder and `.exe`."""
    return _SUFFIX.sub("", word.text.replace("\\", "/").rsplit("/", 1)[-1].casefold())


def make_words(*texts: str) -> tuple[Word, ...]:
    """Return words that are known."""
    return tuple(Word(text) for text in texts)
