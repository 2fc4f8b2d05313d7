"""PowerShell: its text is rewritten as bash, which has the same commands, words and pipes.

Rules: about_Parsing, about_Quoting_Rules and about_Operators of PowerShell's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope, Word
from ci_agent_eval.steering.shells.bash import parse_bash_commands
from ci_agent_eval.steering.shells.grammar import is_too_long

_STRING = r"'[^']*(?:''[^']*)*'?|\"[^\"`]*(?:(?:\"\"|`.)[^\"`]*)*\"?"
_TOKEN = re.compile(
    r"(?P<comment>(?<![^\s;|&(){}])\#[^\n]*|<\#(?:[^\#]|\#(?!>))*(?:\#>|\Z))"
    rf"|(?P<list>@?\(\s*(?:{_STRING})(?:\s*,\s*(?:{_STRING}))*\s*\))"
    rf"|(?P<string>{_STRING})"
    r"|(?P<blank>(?:[ \t\r\f\v]|`\n)+)"
    r"|(?P<escape>`.)"
    r"|(?P<break>\n|;|\|\|?|&&)"
    r"|(?P<call>&)"
    r"|\$(?:\w+:)?(?P<assignment>\w+)[ \t]*[-+*/]?=(?!=)[ \t]*(?=['\"$@])"
    r"|\$(?:\w+:)?(?P<result>\w+)[ \t]*[-+*/]?=(?!=)[ \t]*"
    r"|\$\{?(?:\w+:)?(?P<variable>\w+)\}?"
    r"|@(?P<splat>\w+)(?=[\s;|&)}]|\Z)"
    r"|(?:function|filter)[ \t]+(?P<function>[\w:-]+)\s*(?:\([^()]*\)\s*)?\{"
    r"|(?P<empty>\{\})"
    r"|(?P<open>[$@]?\(|@?\{)"
    r"|(?P<close>[)}])"
    r"|(?P<redirection>\*>)"
    r"|(?P<dollar>\$)"
    r"|(?P<word>[^\s;|&(){}'\"`$@<>\#]+|.)",
    re.DOTALL | re.IGNORECASE,
)
_KEYWORDS = frozenset(
    {"begin", "catch", "do", "else", "elseif", "end", "finally", "for", "foreach", "if", "param"}
    | {"process", "return", "switch", "try", "until", "while"}
)
_IN_STRING = re.compile(r"`(.)|\"\"|\$\{?(?:\w+:)?(\w+)\}?|\$\(|[\\\"$]", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": ""}
_HERE_STRING = re.compile(r"@(['\"])[ \t]*\n")


def parse_powershell_commands(text: str, scope: ShellScope) -> Iterator[ShellCommand]:
    """Yield the commands of a text in the order they start, and update `scope`."""
    text = _extract_here_strings(text.replace("\r\n", "\n"), scope)
    if is_too_long(text):
        scope.limits.is_incomplete = True
        return
    yield from parse_bash_commands(_BashWriter().write(text), scope)


def _extract_here_strings(text: str, scope: ShellScope) -> str:
    """Replace each here-string with a variable."""
    parts: list[str] = []
    at = 0
    missing: set[str] = set()
    for start in _HERE_STRING.finditer(text):
        if start.start() < at or start[1] in missing:
            continue
        end = text.find(f"\n{start[1]}@", start.end() - 1)
        if end < 0:
            missing.add(start[1])
            continue
        name = f"HERE_STRING_{len(parts)}"
        scope.variables[name] = (Word(text[start.end() : end]),)
        parts += [text[at : start.start()], f"${name}"]
        at = end + 3
    return "".join([*parts, text[at:]])


class _BashWriter:
    """Rewrites a text token by token."""

    def __init__(self) -> None:
        self.is_start = True
        """Whether the next word is a command's first."""
        self.is_called = False
        """Whether the call operator stands before it."""
        self.is_value = False
        """Whether it is assigned to a variable."""
        self.closers: list[str] = []
        """What the closing brackets are rewritten as."""

    def write(self, text: str) -> str:
        """Return the text for bash."""
        written = _TOKEN.sub(self._write_token, text)
        return written + "".join(reversed(self.closers))

    def _write_token(self, token: re.Match[str]) -> str:
        kind, text = token.lastgroup or "", token[0]
        if kind in {"comment", "blank"}:
            return " " if kind == "blank" else ""
        if kind in {"open", "close", "break", "call"}:
            return self._write_operator(kind, text)
        if not self.is_start:
            return self._quote_word(kind, token[kind], text)
        if kind in {"assignment", "result"}:
            return self._write_assignment(token[kind].upper(), is_value=kind == "assignment")
        if kind == "function":
            self.closers.append("\n}\n")
            return f"function {token[kind]} {{\n"
        return self._write_first_word(kind, token[kind], text)

    def _write_operator(self, kind: str, text: str) -> str:
        if kind == "open":
            return self._write_open(text)
        if kind == "close":
            closer = self.closers.pop() if self.closers else "\n"
            self.is_start = closer[0] == "\n"
            return closer
        self.is_called = self.is_start and kind == "call"
        is_empty = self.is_start and text in {"|", "||", "&&"}
        self.is_start, self.is_value = True, False
        if self.is_called:
            return ""
        return f": {text} " if is_empty else text

    def _write_open(self, text: str) -> str:
        is_block = "{" in text or (self.is_start and text != "$(")
        self.closers.append("\n" if is_block else ')"')
        self.is_start = True
        return "\n" if is_block else '"$('

    def _write_assignment(self, name: str, *, is_value: bool) -> str:
        """Assign a value; the result of a command is not known."""
        self.is_value, self.is_start = is_value, not is_value
        return f"{name}=" if is_value else f"unset {name}\n"

    def _write_first_word(self, kind: str, name: str, text: str) -> str:
        if text.casefold() in _KEYWORDS:
            return ""
        self.is_start = False
        # `select` is a keyword of bash. A value in a command's place is printed.
        word = "select-object" if text.casefold() == "select" else text
        prints = kind in {"list", "string", "variable"} and not self.is_called
        written = self._quote_word(kind, name, word)
        return f"write-output {written}" if prints else written

    def _quote_word(self, kind: str, name: str, text: str) -> str:
        if kind == "list":
            strings = map(_quote_string, re.findall(_STRING, text))
            return f"({' '.join(strings)})" if self.is_value else ",".join(strings)
        if kind == "string":
            return _quote_string(text)
        if kind in {"variable", "splat"}:
            return f'"{_name_variable(name, "[@]" if kind == "splat" else "")}"'
        return _PLAIN[kind](text) if kind in _PLAIN else text.replace("\\", "/")


def _name_variable(name: str, suffix: str = "") -> str:
    """Return a variable of any case as bash writes it."""
    upper = name.upper()
    return f"${{{'PWD' if upper == 'PSSCRIPTROOT' else upper}{suffix}}}"


def _quote_string(text: str) -> str:
    inner = text[1:-1] if len(text) > 1 and text.endswith(text[0]) else text[1:]
    if text.startswith("'"):
        literal = inner.replace("''", "'").replace("'", "'\\''")
        return f"'{literal}'"
    return f'"{_IN_STRING.sub(_rewrite_in_string, inner)}"'


def _rewrite_in_string(match: re.Match[str]) -> str:
    if match[1]:
        return _quote_character(_ESCAPES.get(match[1], match[1]))
    if match[2]:
        return _name_variable(match[2])
    return match[0] if match[0] == "$(" else f"\\{match[0][0]}"


def _quote_character(character: str) -> str:
    return f"\\{character}" if character in "\\\"$`;|&(){}<>#*?[] '" else character


_PLAIN: Mapping[str, Callable[[str], str]] = {
    "escape": lambda text: _quote_character(text[1]),
    "redirection": lambda _text: ">",
    "empty": lambda _text: "'{}'",
    "dollar": lambda _text: "\\$",
}
