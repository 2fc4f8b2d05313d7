"""Normal form of a command, independent of spacing and quoting."""

from __future__ import annotations

import re
import shlex

from ci_agent_eval.steering.policy.model import Shell

_ESCAPE: dict[Shell, str] = {"bash": r"\\", "powershell": "`", "cmd": r"\^"}
_SEPARATOR = ";"


def _compile_pattern(escape: str, single: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<continued>{escape}\n)"
        rf"|(?P<escaped>{escape}.)"
        rf"|{single}"
        rf"|\"(?P<double>(?:{escape}.|[^\"{escape}])*)\""
        r"|(?P<comment>(?<![^\s;&|()])\#[^\n]*)"
        r"|(?P<operator>\n|[|&;()<>]+)"
        r"|(?P<blank>[ \t\r]+)"
        rf"|(?P<bare>[^\s'\"|&;()<>\#{escape}]+|.)",
        re.DOTALL,
    )


_PATTERNS = {
    shell: _compile_pattern(escape, "(?!)" if shell == "cmd" else r"'(?P<single>[^']*)'")
    for shell, escape in _ESCAPE.items()
}


def normalize_command(text: str, shell: Shell = "bash") -> str:
    """Return the words and operators of a text with uniform quoting and single blanks."""
    tokens: list[str] = []
    word: str | None = None
    for match in _PATTERNS[shell].finditer(text):
        kind, value = match.lastgroup, match[match.lastgroup or 0]
        if kind in {"blank", "operator", "comment"}:
            if word is not None:
                tokens.append(shlex.quote(word))
            word = None
            if kind == "operator":
                _append_operator(tokens, value)
        elif kind == "escaped":
            word = (word or "") + value[1:]
        elif kind != "continued":
            word = (word or "") + value
    if word is not None:
        tokens.append(shlex.quote(word))
    while tokens and tokens[-1] == _SEPARATOR:
        tokens.pop()
    return " ".join(tokens)


def _append_operator(tokens: list[str], operator: str) -> None:
    """Append an operator; converts newlines to `;` and merges repeated ones."""
    token = _SEPARATOR if operator == "\n" else operator
    if token != _SEPARATOR or (tokens and tokens[-1] != _SEPARATOR):
        tokens.append(token)
