"""pytest's explanation of comparisons in an evaluation, made the same in every environment.

By default pytest shows more on CI and with `-v`, truncates long texts elsewhere, and lists
differences in the order of a set. Reasons are compared between runs and must not vary so.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from copy import copy
from itertools import islice
from typing import Any

import pytest
from _pytest._io.saferepr import saferepr

MAX_LINES = 500
"""Maximum number of explanation lines that are read; a reason keeps far fewer."""

_DETAILS = ("Full diff", "Use -v to get more diff")
"""First words of the part that pytest shows only on CI or with `-v`, and of its replacement
elsewhere."""

_UNORDERED = ("Extra items in the ", "Differing items:")
"""Headings of lines that are in the order of a set."""

_ORDERED = ("Left contains ", "Right contains ")
"""Headings that may follow these, of lines that pytest itself sorts."""

_ADVICE = (", use -vv to show", ", use -v to show")


_TITLE = 30
"""Maximum characters of a value in a title, as in pytest without `-v`."""


def explain(item: pytest.Item, op: str, left: object, right: object) -> str | None:
    """Call the plugins, and return the first answer as the rewritten assert formats it."""
    config: Any = _TerseConfig(item.config)
    answers = item.ihook.pytest_assertrepr_compare(config=config, op=op, left=left, right=right)
    for answer in answers:
        if lines := tidy_lines(islice(answer or (), MAX_LINES)):
            lines[0] = _stabilize_title(lines[0], op, left, right)
            # `~` starts a line of an explanation, and `%` a format specifier.
            text = "\n~".join(line.replace("\n", "\\n") for line in lines)
            return text.replace("%", "%%")
    return None


class _TerseConfig:
    """A pytest configuration without `-v`, colours, and truncation of explanations."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def get_verbosity(self, _type: str | None = None) -> int:
        return 0

    def getini(self, name: str) -> Any:
        return "0" if name.startswith("truncation_limit_") else self._config.getini(name)

    def get_terminal_writer(self) -> Any:
        """Return a writer without colours: escape sequences would count as words of a line."""
        writer = copy(self._config.get_terminal_writer())
        writer.code_highlight = False
        return writer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)


def _stabilize_title(title: str, op: str, left: object, right: object) -> str:
    """Return pytest's title with sorted sets, truncated afterwards; another plugin's unchanged."""
    if f" {op} " not in title or "{" not in title or isinstance(left, str):
        return title
    return f"{_format_value(left)} {op} {_format_value(right)}"


def _format_value(value: object) -> str:
    text = sort_sets(saferepr(value, maxsize=None))
    kept = (_TITLE - 3) // 2
    return text if len(text) <= _TITLE else f"{text[:kept]}...{text[-kept - 1 :]}"


def tidy_lines(lines: Iterable[str]) -> list[str]:
    """Return an explanation's lines without details and advice, with unordered ones sorted."""
    return [_drop_advice(line) for line in _sort_unordered_items(_drop_details(lines))]


def _drop_details(lines: Iterable[str]) -> list[str]:
    kept: list[str] = []
    hidden: int | None = None  # the indentation of the details that this line may belong to
    for line in lines:
        if hidden is not None and (not line.strip() or _count_indent(line) >= hidden):
            continue
        hidden = _count_indent(line) if line.strip().startswith(_DETAILS) else None
        if hidden is None:
            kept.append(line)
        else:
            _drop_blanks(kept)
    _drop_blanks(kept)
    return kept


def _drop_blanks(lines: list[str]) -> None:
    while lines and not lines[-1].strip():
        lines.pop()


def _sort_unordered_items(lines: Iterable[str]) -> Iterator[str]:
    heading: str | None = None
    items: list[str] = []
    for line in lines:
        if heading is not None and _is_item(line, heading):
            items.append(line)
            continue
        yield from sorted(items)
        items, heading = [], line if line.strip().startswith(_UNORDERED) else None
        yield line
    yield from sorted(items)


def _is_item(line: str, heading: str) -> bool:
    words = line.strip()
    return (
        bool(words)
        and _count_indent(line) == _count_indent(heading)
        and not words.startswith((*_UNORDERED, *_ORDERED))
    )


def _count_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _drop_advice(line: str) -> str:
    for advice in _ADVICE:
        line = line.removesuffix(advice)
    return line


_SET = re.compile(r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\{[^{}]{1,2000}\}""")
"""Matches a quoted text, which stays as it is, or the possible text of a set without inner sets."""

_TEXT_COMPARED = re.compile(r"(?:assert )?(?:not )?['\"]")
"""Matches the first line of an explanation whose next lines show parts of a text."""

_ORIGIN = re.compile(r"\s*\+?\s*(?:where|and) ")
"""Matches a line of an explanation that shows where a value is from."""


_MAY_WARN = re.compile(r"\\|\d[A-Za-z]")
"""Matches a backslash, and a number before a letter, whose style Python may warn about."""


def sort_sets(text: str) -> str:
    """Return the text of values with the items of each literal set sorted."""
    return _SET.sub(_sort_set, text)


def sort_explained_sets(explanation: str) -> str:
    """Return the explanation of a passed assert with sorted sets; text of the agent stays."""
    first, *others = explanation.split("\n")
    is_text = _TEXT_COMPARED.match(first) is not None
    kept = [line if is_text and not _ORIGIN.match(line) else sort_sets(line) for line in others]
    return "\n".join([sort_sets(first), *kept])


def sort_failed_sets(error: str) -> str:
    """Return the text of a failed assert with sorted sets, but its own message as it is."""
    message, start, explanation = f"\n{error}".partition("\nassert ")
    if not start:
        return error
    return f"{message}\n{sort_explained_sets(f'assert {explanation}')}"[1:]


def _sort_set(found: re.Match[str]) -> str:
    if "..." in found[0] or found[0][0] != "{":
        return found[0]  # truncated, or with an Ellipsis: not the original value
    try:
        value = _parse_set(found[0])
    except Exception:  # noqa: BLE001 - other text is left unchanged
        return found[0]
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set) else found[0]


def _parse_set(text: str) -> object:
    """Return the value of a literal without Python's warnings about the style of foreign text.

    Warnings are caught only where one may come: that changes the state of the whole process, and
    other threads run episodes.
    """
    if not _MAY_WARN.search(text):
        return ast.literal_eval(text)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="<unknown>")
        return ast.literal_eval(text)
