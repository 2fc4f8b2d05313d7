r"""PowerShell and cmd.exe: replacements make bash of their text, which has the same words.

Strings become single characters first, so that no replacement applies within them. It follows
about_Parsing and about_Quoting_Rules of PowerShell's documentation, and `cmd /?` and `if /?`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope
from ci_agent_eval.steering.shells.bash import parse_bash_commands
from ci_agent_eval.steering.shells.grammar import is_too_long

_FIRST_STRING = 0xE000
_STRING = r"[\ue000-\uf7ff]"
"""A replaced string: a private character, whose number is the string's index."""
_OPEN, _CLOSE, _BEGIN, _END, _DOLLAR = "\uf800\uf801\uf802\uf803\uf804"
"""Signs of bash that no later replacement changes."""
_SIGNS = str.maketrans(f"{_OPEN}{_CLOSE}{_BEGIN}{_END}{_DOLLAR}", "(){}$")
_PRIVATE = re.compile(r"[\ue000-\uf8ff]")
_START = r"(?:(?<=[\n;|{(}])|(?<=&&)|\A)[ \t]*"
"""The position of a command in PowerShell."""
_LINE_START = r"(?:(?<=[\n|])|(?<=&&)|\A)[ \t]*"
"""The position of a command in cmd, whose blocks are lines."""

Replacement = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]


def parse_powershell_commands(text: str, scope: ShellScope) -> Iterator[ShellCommand]:
    """Yield the commands of PowerShell's text in the order they start, and update `scope`."""
    return _parse(text, scope, _POWERSHELL_STRING, _quote_powershell, _POWERSHELL)


def parse_cmd_commands(text: str, scope: ShellScope) -> Iterator[ShellCommand]:
    """Yield the commands of cmd's text in the order they start, and update `scope`."""
    return _parse(text.replace("^\n", " "), scope, _CMD_STRING, _quote_cmd, _CMD)


def _parse(
    text: str,
    scope: ShellScope,
    string: re.Pattern[str],
    quote: Callable[[re.Match[str]], str],
    replacements: tuple[Replacement, ...],
) -> Iterator[ShellCommand]:
    if is_too_long(text):
        scope.limits.is_incomplete = True
        return
    strings: list[str] = []

    def replace_string(match: re.Match[str]) -> str:
        strings.append(quote(match))
        return chr(_FIRST_STRING + len(strings) - 1) if strings[-1] else ""

    plain = string.sub(replace_string, _PRIVATE.sub("", text.replace("\r\n", "\n")))
    for pattern, replacement in replacements:
        plain = pattern.sub(replacement, plain)
    plain = plain.translate(_SIGNS)
    restore = re.compile(_STRING)
    bash = restore.sub(lambda match: strings[ord(match[0]) - _FIRST_STRING], plain)
    yield from parse_bash_commands(bash, scope)


def _quote(text: str) -> str:
    literal = text.replace("'", "'\\''")
    return f"'{literal}'"


_EMPTY: Replacement = (re.compile(r"(?:\A|(?<=\n))[ \t]*(\|\|?|&&)"), r": \1")
"""A pipe behind a block, which has become lines."""

# PowerShell

_POWERSHELL_STRING = re.compile(
    r"(?P<comment>(?<![^\s;|&(){}])\#[^\n]*|<\#(?:[^\#]|\#(?!>))*(?:\#>|\Z))"
    r"|@(?P<here>['\"])[ \t]*\n(?P<lines>.*?)\n(?P=here)@"
    r"|'(?P<single>[^']*(?:''[^']*)*)'?"
    r"|\"(?P<double>[^\"`]*(?:(?:\"\"|`.)[^\"`]*)*)\"?"
    r"|`(?P<escape>.)",
    re.DOTALL,
)
_IN_DOUBLE = re.compile(r"`(.)|\"\"|\$\{?(?:\w+:)?(\w+)\}?|\$\(|[\\\"$]", re.DOTALL)


def _quote_powershell(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "lines":
        return _quote(match["lines"])
    if kind == "single":
        return _quote(match["single"].replace("''", "'"))
    if kind == "double":
        return f'"{_IN_DOUBLE.sub(_rewrite_in_double, match["double"])}"'
    if kind == "escape":
        return " " if match["escape"] == "\n" else f"\\{match['escape']}"
    return ""


def _rewrite_in_double(match: re.Match[str]) -> str:
    if match[1]:
        return f"\\{match[1]}" if match[1] in '\\"$`' else match[1]
    if match[2]:
        return f"${{{match[2].upper()}}}"
    return match[0] if match[0] == "$(" else f"\\{match[0][0]}"


def _join_list(match: re.Match[str]) -> str:
    """Return the strings of `@('a', 'b')` with commas between them."""
    return ",".join(re.findall(_STRING, match[0]))


def _rewrite_variable(match: re.Match[str]) -> str:
    """Return a variable, whose name has any case, as bash writes it."""
    name = match[1].upper()
    return f'"${_BEGIN}{"PWD" if name == "PSSCRIPTROOT" else name}{_END}"'


_POWERSHELL: tuple[Replacement, ...] = (
    (re.compile(r"\\"), "/"),
    (re.compile(r"\*>"), ">"),
    (re.compile(rf"@?\(\s*{_STRING}(?:\s*,\s*{_STRING})*\s*\)"), _join_list),
    (
        re.compile(rf"{_START}\$(?:\w+:)?(\w+)[ \t]*=(?!=)[ \t]*(?=\$|{_STRING})"),
        lambda match: f"{match[1].upper()}=",
    ),
    (
        re.compile(rf"{_START}\$(?:\w+:)?(\w+)[ \t]*[-+*/]?=(?!=)[ \t]*"),
        lambda match: f"unset {match[1].upper()}\n",
    ),
    # A value in a command's place is printed.
    (re.compile(rf"{_START}(?={_STRING}|\$[\w{{])"), "write-output "),
    (re.compile(rf"{_START}&(?!&)[ \t]*"), ""),
    (re.compile(r"\$\{?(?:\w+:)?(\w+)\}?"), _rewrite_variable),
    (re.compile(rf"{_START}[$@]?\(([^()]*)\)"), r"\n\1\n"),
    (re.compile(r"[$@]?\(([^()]*)\)"), rf'"${_OPEN}\1{_CLOSE}"'),
    (re.compile(r"[$@]?\{|\}|[()]"), "\n"),
    _EMPTY,
)

# cmd.exe

_CMD_VARIABLE = re.compile(r"%(\w+)(?::[^%\n]*)?%|!(\w+)!|%%?~?[a-z]*([\w*])", re.IGNORECASE)
_CMD_STRING = re.compile(r"\"(?P<quoted>[^\"\n]*)\"?|\^(?P<escape>.)", re.DOTALL)


def _quote_cmd(match: re.Match[str]) -> str:
    if match["escape"]:
        return f"\\{match['escape']}"
    escaped = re.sub(r"[\\\"$`]", r"\\\g<0>", match["quoted"])
    return '"' + _CMD_VARIABLE.sub(lambda each: f"${{{_name_variable(each)}}}", escaped) + '"'


def _name_variable(match: re.Match[str]) -> str:
    return str(match[match.lastindex or 0]).upper()


def _rewrite_cmd_variable(match: re.Match[str]) -> str:
    name = _name_variable(match)
    return "." if name == "CD" else f"{_DOLLAR}{_BEGIN}{name}{_END}"


def _rewrite_set(match: re.Match[str]) -> str:
    value = re.sub(r"\s", r"\\\g<0>", match[2].strip())
    return f"{match[1].upper()}={value}"


_WORD = r"\S+"
_COMPARED = (
    rf"(?:exist|defined|errorlevel|cmdextversion)[ \t]+{_WORD}"
    rf"|[^\s=]*[ \t]*==[ \t]*{_WORD}"
    rf"|{_WORD}[ \t]+(?:equ|neq|lss|leq|gtr|geq)[ \t]+{_WORD}"
)
_PREFIX = (
    r"[@,;= \t]+|(?:call|else|do)\b"
    rf"|if[ \t]+(?:/i[ \t]+)?(?:not[ \t]+)?(?:{_COMPARED})"
    rf"|start\b(?:[ \t]+(?:{_STRING}|/d[ \t]+{_WORD}|/{_WORD}))*"
)
"""What may stand before a command."""
_CMD: tuple[Replacement, ...] = (
    (re.compile(r"\\(?![ ^])"), "/"),
    (re.compile(rf"{_LINE_START}@?for\b[^(\n]*\([^)\n]*\)", re.IGNORECASE), ""),
    (re.compile(r"[()]|(?<![&>])&(?![&\d])"), "\n"),
    (re.compile(rf"{_LINE_START}(?:rem\b|:)[^\n]*", re.IGNORECASE), ""),
    (re.compile(rf"{_LINE_START}(?:{_PREFIX})+", re.IGNORECASE), ""),
    (
        re.compile(rf"{_LINE_START}set[ \t]+(?:/[ap][ \t]+)?(\w+)=([^&|\n]*)", re.IGNORECASE),
        _rewrite_set,
    ),
    (_CMD_VARIABLE, _rewrite_cmd_variable),
    (re.compile(r"[;$`'#{}*?\[\]~]"), r"\\\g<0>"),
    _EMPTY,
)
