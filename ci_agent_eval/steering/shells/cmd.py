r"""cmd.exe: the commands that a line or a batch file runs, by its rules for words.

A lexer of our own: the published grammar does not read `call .venv\\Scripts\activate`. It follows
the help texts of `cmd /?`, `if /?`, `for /?` and `start /?`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ci_agent_eval.steering.policy.words import Command, Scope, Word
from ci_agent_eval.steering.shells.output import output_of

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


def commands_in(text: str, scope: Scope) -> Iterator[Command]:
    """Yield the commands of a text in the order they start, and keep `scope` up to date."""
    stdin: str | None = None
    for words, operator in _statements(text.replace("\r\n", "\n"), scope):
        inner = _inner(words)
        command = Command(tuple(inner), stdin=stdin)
        stdin = output_of(command, scope.files) if operator == "|" else None
        if inner and inner[0].text.casefold() == "set":
            _set(inner, scope)
        elif inner:
            yield command


def _statements(text: str, scope: Scope) -> Iterator[tuple[list[Word], str]]:
    """Cut a text at its operators."""
    words: list[Word] = []
    target = False
    for match in _TOKEN.finditer(text):
        scope.effort.steps -= 1
        if scope.effort.steps < 0:
            return
        if match["operator"]:
            if words:
                yield words, match["operator"]
            words, target = [], False
        elif match["redirection"]:
            target = "&" not in match["redirection"]
        elif match["word"]:
            if not target and not _is_title(words, match["word"]):
                words.append(_word(match["word"], scope))
            target = False
    if words:
        yield words, ""


def _is_title(words: list[Word], text: str) -> bool:
    """Say whether it is the title of a window, which `start` takes only in quotes."""
    return text.startswith('"') and bool(words) and words[-1].text.casefold() == "start"


def _word(text: str, scope: Scope) -> Word:
    known = True

    def value(match: re.Match[str]) -> str:
        nonlocal known
        name = (match[1] or match[3] or "").casefold()
        if name == "cd":
            return "."
        held = scope.value(name)
        if held is not None:
            return " ".join(word.text for word in held)
        if match[2]:
            return " ".join(word.text for word in scope.parameters)
        known = False
        return match[0]

    expanded = _VARIABLE.sub(value, text)
    return Word(re.sub(r'\^(.)|"', lambda match: match[1] or "", expanded), known)


def _inner(words: list[Word]) -> list[Word]:
    """Take off what may stand before a command: `@`, `call`, `start`, `if …`, `for … do`."""
    while words:
        name = words[0].text.casefold()
        if name.startswith("@") and len(name) > 1:
            words = [Word(words[0].text.lstrip("@"), words[0].known), *words[1:]]
        elif name in {"call", "else", "@", "do"}:
            words = words[1:]
        elif name == "if":
            words = words[_condition(words) :]
        elif name == "start":
            words = _started(words[1:])
        elif name == "rem" or name.startswith(":") or name == "for":
            return []
        else:
            return words
    return words


def _condition(words: list[Word]) -> int:
    """Return how many words `if` and its condition take."""
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


def _started(words: list[Word]) -> list[Word]:
    while words and (words[0].text.startswith("/") or not words[0].text.strip()):
        takes_folder = words[0].text.casefold() == "/d"
        words = words[2:] if takes_folder else words[1:]
    return words


def _set(words: list[Word], scope: Scope) -> None:
    text = " ".join(word.text for word in words[1:] if not word.text.startswith("/"))
    name, equals, value = text.partition("=")
    if equals:
        scope.variables[name.strip().casefold()] = (Word(value),)
        if name.strip().casefold() == "pytest_addopts":
            scope.variables["PYTEST_ADDOPTS"] = (Word(value),)
