r"""cmd.exe: the commands that a line or a batch file runs, by its rules for words.

A lexer of our own: the published grammar does not read `call .venv\\Scripts\activate`. It follows
the help texts of `cmd /?`, `if /?`, `for /?` and `start /?`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope, Word
from ci_agent_eval.steering.shells.command_output import predict_output

_TOKEN = re.compile(
    r"(?P<blank>(?:[ \t,;=\r]|\^\n)+)"
    r"|(?P<redirection>\d?(?:>>?|<)(?:&\d)?)"
    r"|(?P<operator>&&|\|\||[&|\n()])"
    r"|(?P<word>(?:\"[^\"\n]*\"?|\^[^\n]|[^\s&|()<>\"^,;=]|=(?=[^\s])|,(?=[^\s])|;(?=\S))+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_VARIABLE = re.compile(r"%(?:(\w+)(?::[^%]*)?%|~?[a-z]*([0-9*]))|%%?~?\w|!(\w+)!", re.IGNORECASE)
_COMPARISON = re.compile(r"==|^(equ|neq|lss|leq|gtr|geq)$", re.IGNORECASE)


def parse_cmd_commands(text: str, scope: ShellScope) -> Iterator[ShellCommand]:
    """Yield the commands of a text in the order they start, and update `scope`."""
    stdin: str | None = None
    for words, operator in _split_statements(text.replace("\r\n", "\n"), scope):
        stripped = _strip_prefixes(words)
        command = ShellCommand(tuple(stripped), stdin=stdin)
        stdin = predict_output(command, scope.files) if operator == "|" else None
        if stripped and stripped[0].text.casefold() == "set":
            _set_variable(stripped, scope)
        elif stripped:
            yield command


def _split_statements(text: str, scope: ShellScope) -> Iterator[tuple[list[Word], str]]:
    """Split a text at its operators."""
    words: list[Word] = []
    is_redirected = False
    for match in _TOKEN.finditer(text):
        scope.limits.steps -= 1
        if scope.limits.steps < 0:
            return
        if match["operator"]:
            if words:
                yield words, match["operator"]
            words, is_redirected = [], False
        elif match["redirection"]:
            is_redirected = "&" not in match["redirection"]
        elif match["word"]:
            if not is_redirected and not _is_window_title(words, match["word"]):
                words.append(_expand_word(match["word"], scope))
            is_redirected = False
    if words:
        yield words, ""


def _is_window_title(words: list[Word], text: str) -> bool:
    """Return whether a word is the quoted window title of `start`."""
    return text.startswith('"') and bool(words) and words[-1].text.casefold() == "start"


def _expand_word(text: str, scope: ShellScope) -> Word:
    known = True

    def value(match: re.Match[str]) -> str:
        nonlocal known
        name = (match[1] or match[3] or "").casefold()
        if name == "cd":
            return "."
        value_words = scope.get_variable(name)
        if value_words is not None:
            return " ".join(word.text for word in value_words)
        if match[2]:
            return " ".join(word.text for word in scope.parameters)
        known = False
        return match[0]

    expanded = _VARIABLE.sub(value, text)
    return Word(re.sub(r'\^(.)|"', lambda match: match[1] or "", expanded), known)


def _strip_prefixes(words: list[Word]) -> list[Word]:
    """Remove the prefixes of a command: `@`, `call`, `start`, `if …`, `for … do`."""
    while words:
        name = words[0].text.casefold()
        if name.startswith("@") and len(name) > 1:
            words = [Word(words[0].text.lstrip("@"), words[0].known), *words[1:]]
        elif name in {"call", "else", "@", "do"}:
            words = words[1:]
        elif name == "if":
            words = words[_count_condition_words(words) :]
        elif name == "start":
            words = _strip_start_options(words[1:])
        elif name == "rem" or name.startswith(":") or name == "for":
            return []
        else:
            return words
    return words


def _count_condition_words(words: list[Word]) -> int:
    """Return the number of words of `if` and its condition."""
    at = 1
    while at < len(words) and words[at].text.casefold() in {"not", "/i"}:
        at += 1
    if at < len(words) and words[at].text.casefold() in {"exist", "defined", "errorlevel"}:
        return at + 2
    for after in range(at, min(at + 3, len(words))):
        found = _COMPARISON.search(words[after].text)
        if found:
            ends_here = found[0] == "==" and not words[after].text.endswith("==")
            return after + (1 if ends_here else 2)
    return at + 1


def _strip_start_options(words: list[Word]) -> list[Word]:
    while words and (words[0].text.startswith("/") or not words[0].text.strip()):
        takes_folder = words[0].text.casefold() == "/d"
        words = words[2:] if takes_folder else words[1:]
    return words


def _set_variable(words: list[Word], scope: ShellScope) -> None:
    text = " ".join(word.text for word in words[1:] if not word.text.startswith("/"))
    name, equals, value = text.partition("=")
    if equals:
        scope.variables[name.strip().casefold()] = (Word(value),)
        if name.strip().casefold() == "pytest_addopts":
            scope.variables["PYTEST_ADDOPTS"] = (Word(value),)
