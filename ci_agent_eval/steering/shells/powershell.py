"""PowerShell: the commands that a text runs, by its rules for words in argument mode.

A lexer of our own: the published grammars break at `--opt="a b"` and at `--`. It follows
about_Parsing, about_Quoting_Rules and about_Operators of PowerShell's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope, Word
from ci_agent_eval.steering.shells.command_output import predict_output

_ASSIGNMENT = re.compile(r"\$(?:\{?(?:\w+:)?(\w+)\}?)[ \t]*[-+*/]?=(?!=)[ \t]*", re.ASCII)
_BREAK = re.compile(r"&&|\|\||[|;\n]")
_COMMENT = re.compile(r"#[^\n]*|<#.*?(?:#>|\Z)", re.DOTALL)
_HERE = re.compile(r"@(['\"])[ \t]*\n")
_BARE = re.compile(r"[^\s;|&(){}'\"`$@<>#]+")
_BLANK = re.compile(r"(?:[ \t\r\f\v]|`\r?\n)+")
_OPEN = re.compile(r"[$@]?\(|@?\{")
_REDIRECTION = re.compile(r"[\d*]?>&\d|[\d*]?>>?[ \t]*")
_VARIABLE = re.compile(r"\$(?:\{(?:\w+:)?(\w+)\}|(?:\w+:)?(\w+)|[?^$])", re.ASCII)
_SPLAT = re.compile(r"@(\w+)(?=[\s;|&)}]|$)")
_VERBATIM = re.compile(r"--%([^\n|]*)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": ""}
_BODIED = frozenset({"function", "filter"})
_UNKNOWN_TEXT = "{…}"


def commands_in(text: str, scope: ShellScope) -> Iterator[ShellCommand]:
    """Yield the commands of a text in the order they start, and keep `scope` up to date."""
    yield from _Lexer(text.replace("\r\n", "\n"), scope).commands()


@dataclass(slots=True)
class _OpenCommand:
    """A command of which not all words are read, and what it is part of."""

    words: list[Word] = field(default_factory=list)
    expression: bool = False
    """Its first word is a value rather than the name of a program."""
    called: bool = False
    target: str = ""
    """The variable that gets its result."""
    stdin: str | None = None
    found: list[ShellCommand] = field(default_factory=list)
    """The commands of the block it stands in."""


def _join_list(block: _OpenCommand) -> Word | None:
    """Return the list `'a', 'b'` of a block as one word with commas; None if it is another."""
    words = block.words
    pairs = pairwise(words)
    if not block.expression or not all(word.known for word in words):
        return None
    if not all(a.text.endswith(",") or b.text.startswith(",") for a, b in pairs):
        return None
    return Word("".join(word.text for word in words)) if words else None


class _Lexer:
    def __init__(self, text: str, scope: ShellScope) -> None:
        self.text = text
        self.at = 0
        self.scope = scope
        self.open = _OpenCommand()
        self.outer: list[_OpenCommand] = []
        self.endless: set[str] = set()
        """The quotes of here-strings that are known not to end."""

    def commands(self) -> list[ShellCommand]:
        while self.at < len(self.text) and self.scope.limits.steps > 0:
            self.scope.limits.steps -= 1
            self._step()
        while self.outer:
            self._close()
        self._end("")
        return self.open.found

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def _step(self) -> None:
        if self._take(_BLANK) or self._take(_COMMENT):
            return
        separator = self._take(_BREAK)
        if separator:
            self._end(separator[0])
        elif not self._assigns() and not self._brackets():
            self._argument()

    def _assigns(self) -> bool:
        match = self._take(_ASSIGNMENT) if not self.open.words else None
        if match is None:
            return False
        self.open.target = match[1].casefold()
        return True

    def _brackets(self) -> bool:
        if self._take(_OPEN):
            self.outer.append(self.open)
            self.open = (
                _OpenCommand() if self._starts_body() else _OpenCommand(found=self.open.found)
            )
            return True
        if self.text[self.at] in ")}":
            self.at += 1
            self._close()
            return True
        return False

    def _starts_body(self) -> bool:
        words = self.open.words
        return len(words) == 2 and words[0].text.casefold() in _BODIED

    def _close(self) -> None:
        """End a block: what was found in it runs, or is kept as a function's body."""
        values = _join_list(self.open)
        self._end("")
        inner = self.open.found
        if not self.outer:
            return
        self.open = self.outer.pop()
        words = self.open.words
        if self._starts_body() and inner is not self.open.found:
            self.scope.functions[words[1].text.casefold()] = tuple(inner)
            self.open.words = []
            return
        self.open.expression |= not words
        words.append(values or Word(_UNKNOWN_TEXT, known=False))

    def _argument(self) -> None:
        if self._take(_REDIRECTION):
            if not self.text[self.at - 1].isdigit():
                self._word()
            return
        verbatim = self._take(_VERBATIM)
        if verbatim:
            self.open.words.extend(Word(part) for part in verbatim[1].split())
        elif self.text[self.at] == "&":
            self.at += 1
            if self.open.words:
                self._end("&")
            else:
                self.open.called = True
        else:
            self._next_word()

    def _next_word(self) -> None:
        splat = self._take(_SPLAT)
        if splat:
            self.open.words.extend(self._splatted(splat[1]))
            return
        first = self.text[self.at]
        word = self._word()
        if not self.open.words:
            self.open.expression = first in "'\"@$[" and not self.open.called
        self.open.words.append(word)

    def _splatted(self, name: str) -> list[Word]:
        held = self.scope.value(name.casefold()) or (Word(f"${name}", known=False),)
        return [Word(part, word.known) for word in held for part in word.text.split(",")]

    def _word(self) -> Word:
        """Read one word: quoted and bare parts up to a blank or an operator."""
        parts: list[Word] = []
        start = self.at
        while self.at < len(self.text) and (self.at == start or not self._at_end()):
            parts.append(self._part())
        return Word("".join(part.text for part in parts), all(part.known for part in parts))

    def _at_end(self) -> bool:
        return (
            self.text[self.at] in " \t\r\n;|&(){}" or _BLANK.match(self.text, self.at) is not None
        )

    def _part(self) -> Word:
        bare = self._take(_BARE)
        if bare:
            return Word(bare[0])
        here = self._here()
        if here is not None:
            return here
        character = self.text[self.at]
        if character in "'\"":
            return self._string(character)
        variable = self._take(_VARIABLE)
        if variable:
            return self._value(variable)
        self.at += 1
        if character == "`" and self.at < len(self.text):
            self.at += 1
            return Word(self.text[self.at - 1])
        return Word(character)

    def _here(self) -> Word | None:
        """Read a here-string; None if none starts here, or it has no end."""
        start = _HERE.match(self.text, self.at)
        if start is None or start[1] in self.endless:
            return None
        end = self.text.find(f"\n{start[1]}@", start.end() - 1)
        if end < 0:
            self.endless.add(start[1])
            return None
        self.at = end + 3
        inner = self.text[start.end() : end]
        return Word(inner) if start[1] == "'" else self._expanded(inner)

    def _string(self, quote: str) -> Word:
        start = self.at = self.at + 1
        while self.at < len(self.text):
            if self.text.startswith(quote * 2, self.at) or (
                quote == '"' and self.text[self.at] == "`"
            ):
                self.at += 2
            elif self.text[self.at] == quote:
                break
            else:
                self.at += 1
        inner = self.text[start : self.at]
        self.at += 1
        if quote == "'":
            return Word(inner.replace("''", "'"))
        return self._expanded(inner.replace('""', '"'))

    def _expanded(self, text: str) -> Word:
        """Expand a double-quoted text; commands in it run."""
        if "$(" in text:
            for inner in re.findall(r"\$\(([^()]*)\)", text):
                self.open.found.extend(_Lexer(inner, self.scope).commands())
            return Word(text, known=False)
        known = True

        def value(match: re.Match[str]) -> str:
            nonlocal known
            word = self._value(match)
            known &= word.known
            return word.text

        expanded = re.sub(r"(?<!`)" + _VARIABLE.pattern, value, text)
        return Word(re.sub("`(.)", lambda m: _ESCAPES.get(m[1], m[1]), expanded), known)

    def _value(self, match: re.Match[str]) -> Word:
        name = (match[1] or match[2] or "").casefold()
        if name == "pwd" or match[0].casefold() == "$psscriptroot":
            return Word(".")
        words = self.scope.value(name)
        if words is None or len(words) != 1:
            return Word(match[0], known=False)
        return words[0]

    def _end(self, separator: str) -> None:
        """End a command at a separator; behind `|` its output is known if it is a text."""
        done, self.open = self.open, _OpenCommand(found=self.open.found)
        if not done.words:
            return
        command = ShellCommand(tuple(done.words), stdin=done.stdin)
        if done.expression:
            printed = done.words[0].text if done.words[0].known else None
        else:
            done.found.extend(self._called(command))
            printed = predict_output(command, self.scope.files)
        if done.target:
            self.scope.variables[done.target] = (
                (Word(printed),) if printed is not None else (Word(f"${done.target}", known=False),)
            )
            if done.target == "pytest_addopts":
                self.scope.variables["PYTEST_ADDOPTS"] = self.scope.variables[done.target]
        self.open.stdin = printed if separator == "|" else None

    def _called(self, command: ShellCommand) -> tuple[ShellCommand, ...]:
        body = self.scope.functions.get(command.words[0].text.casefold())
        return body if isinstance(body, tuple) else (command,)
