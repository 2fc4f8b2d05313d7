"""Parser of PowerShell text, based on PowerShell's rules for words in argument mode.

A hand-written lexer, because published grammars fail on `--opt="a b"` and on `--`. Rules:
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


def parse_powershell_commands(text: str, scope: ShellScope) -> Iterator[ShellCommand]:
    """Yield the commands of a text in the order they start, and update `scope`."""
    yield from _Lexer(text.replace("\r\n", "\n"), scope).read_commands()


@dataclass(slots=True)
class _OpenCommand:
    """An incomplete command and its context."""

    words: list[Word] = field(default_factory=list)
    is_expression: bool = False
    """Whether its first word is a value instead of a program's name."""
    has_call_operator: bool = False
    target: str = ""
    """The variable that receives its result."""
    stdin: str | None = None
    block_commands: list[ShellCommand] = field(default_factory=list)
    """The commands of the enclosing block."""


def _join_list(block: _OpenCommand) -> Word | None:
    """Return a block's list `'a', 'b'` as one word with commas; None if it is no list."""
    words = block.words
    pairs = pairwise(words)
    if not block.is_expression or not all(word.known for word in words):
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
        self.unterminated_quotes: set[str] = set()
        """The quotes of here-strings without an end."""

    def read_commands(self) -> list[ShellCommand]:
        while self.at < len(self.text) and self.scope.limits.steps > 0:
            self.scope.limits.steps -= 1
            self._read_step()
        while self.outer:
            self._close_block()
        self._end_command("")
        return self.open.block_commands

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def _read_step(self) -> None:
        if self._take(_BLANK) or self._take(_COMMENT):
            return
        separator = self._take(_BREAK)
        if separator:
            self._end_command(separator[0])
        elif not self._read_assignment() and not self._read_bracket():
            self._read_argument()

    def _read_assignment(self) -> bool:
        match = self._take(_ASSIGNMENT) if not self.open.words else None
        if match is None:
            return False
        self.open.target = match[1].casefold()
        return True

    def _read_bracket(self) -> bool:
        if self._take(_OPEN):
            self.outer.append(self.open)
            self.open = (
                _OpenCommand()
                if self._starts_body()
                else _OpenCommand(block_commands=self.open.block_commands)
            )
            return True
        if self.text[self.at] in ")}":
            self.at += 1
            self._close_block()
            return True
        return False

    def _starts_body(self) -> bool:
        words = self.open.words
        return len(words) == 2 and words[0].text.casefold() in _BODIED

    def _close_block(self) -> None:
        """End a block: run its commands, or store them as a function's body."""
        values = _join_list(self.open)
        self._end_command("")
        inner = self.open.block_commands
        if not self.outer:
            return
        self.open = self.outer.pop()
        words = self.open.words
        if self._starts_body() and inner is not self.open.block_commands:
            self.scope.functions[words[1].text.casefold()] = tuple(inner)
            self.open.words = []
            return
        self.open.is_expression |= not words
        words.append(values or Word(_UNKNOWN_TEXT, known=False))

    def _read_argument(self) -> None:
        if self._take(_REDIRECTION):
            if not self.text[self.at - 1].isdigit():
                self._read_word()
            return
        verbatim = self._take(_VERBATIM)
        if verbatim:
            self.open.words.extend(Word(part) for part in verbatim[1].split())
        elif self.text[self.at] == "&":
            self.at += 1
            if self.open.words:
                self._end_command("&")
            else:
                self.open.has_call_operator = True
        else:
            self._add_word()

    def _add_word(self) -> None:
        splat = self._take(_SPLAT)
        if splat:
            self.open.words.extend(self._expand_splat(splat[1]))
            return
        first = self.text[self.at]
        word = self._read_word()
        if not self.open.words:
            self.open.is_expression = first in "'\"@$[" and not self.open.has_call_operator
        self.open.words.append(word)

    def _expand_splat(self, name: str) -> list[Word]:
        value_words = self.scope.get_variable(name.casefold()) or (Word(f"${name}", known=False),)
        return [Word(part, word.known) for word in value_words for part in word.text.split(",")]

    def _read_word(self) -> Word:
        """Read one word: its quoted and bare parts up to a blank or an operator."""
        parts: list[Word] = []
        start = self.at
        while self.at < len(self.text) and (self.at == start or not self._is_word_end()):
            parts.append(self._read_part())
        return Word("".join(part.text for part in parts), all(part.known for part in parts))

    def _is_word_end(self) -> bool:
        return (
            self.text[self.at] in " \t\r\n;|&(){}" or _BLANK.match(self.text, self.at) is not None
        )

    def _read_part(self) -> Word:
        bare = self._take(_BARE)
        if bare:
            return Word(bare[0])
        here = self._read_here_string()
        if here is not None:
            return here
        character = self.text[self.at]
        if character in "'\"":
            return self._read_string(character)
        variable = self._take(_VARIABLE)
        if variable:
            return self._expand_variable(variable)
        self.at += 1
        if character == "`" and self.at < len(self.text):
            self.at += 1
            return Word(self.text[self.at - 1])
        return Word(character)

    def _read_here_string(self) -> Word | None:
        """Read a here-string; None if none starts here or it has no end."""
        start = _HERE.match(self.text, self.at)
        if start is None or start[1] in self.unterminated_quotes:
            return None
        end = self.text.find(f"\n{start[1]}@", start.end() - 1)
        if end < 0:
            self.unterminated_quotes.add(start[1])
            return None
        self.at = end + 3
        inner = self.text[start.end() : end]
        return Word(inner) if start[1] == "'" else self._expand_text(inner)

    def _read_string(self, quote: str) -> Word:
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
        return self._expand_text(inner.replace('""', '"'))

    def _expand_text(self, text: str) -> Word:
        """Expand a double-quoted text and run the commands in it."""
        if "$(" in text:
            for inner in re.findall(r"\$\(([^()]*)\)", text):
                self.open.block_commands.extend(_Lexer(inner, self.scope).read_commands())
            return Word(text, known=False)
        known = True

        def value(match: re.Match[str]) -> str:
            nonlocal known
            word = self._expand_variable(match)
            known &= word.known
            return word.text

        expanded = re.sub(r"(?<!`)" + _VARIABLE.pattern, value, text)
        return Word(re.sub("`(.)", lambda m: _ESCAPES.get(m[1], m[1]), expanded), known)

    def _expand_variable(self, match: re.Match[str]) -> Word:
        name = (match[1] or match[2] or "").casefold()
        if name == "pwd" or match[0].casefold() == "$psscriptroot":
            return Word(".")
        words = self.scope.get_variable(name)
        if words is None or len(words) != 1:
            return Word(match[0], known=False)
        return words[0]

    def _end_command(self, separator: str) -> None:
        """End a command at a separator; after `|` predict the next command's input."""
        ended, self.open = self.open, _OpenCommand(block_commands=self.open.block_commands)
        if not ended.words:
            return
        command = ShellCommand(tuple(ended.words), stdin=ended.stdin)
        if ended.is_expression:
            output = ended.words[0].text if ended.words[0].known else None
        else:
            ended.block_commands.extend(self._resolve_call(command))
            output = predict_output(command, self.scope.files)
        if ended.target:
            self.scope.variables[ended.target] = (
                (Word(output),) if output is not None else (Word(f"${ended.target}", known=False),)
            )
            if ended.target == "pytest_addopts":
                self.scope.variables["PYTEST_ADDOPTS"] = self.scope.variables[ended.target]
        self.open.stdin = output if separator == "|" else None

    def _resolve_call(self, command: ShellCommand) -> tuple[ShellCommand, ...]:
        body = self.scope.functions.get(command.words[0].text.casefold())
        return body if isinstance(body, tuple) else (command,)
