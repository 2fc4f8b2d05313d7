"""Columns of a terminal: wide characters take two, combining ones none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_CHUNKS = re.compile(r"[ \t\n\v\f\r]+|[^ \t\n\v\f\r]+")
_WITHOUT_COLUMN = frozenset({"Mn", "Me", "Cf"})


def count_columns(text: str) -> int:
    """Return the number of columns that a line takes."""
    return len(text) if text.isascii() else sum(map(_get_columns, text))


def _get_columns(character: str) -> int:
    if unicodedata.category(character) in _WITHOUT_COLUMN:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrap_columns(text: str, width: int, indent: str = "") -> list[str]:
    """Return the text in lines of at most `width` columns, at least one line.

    `indent` is put before all lines but the first. Blanks at the start of the text stay, those at
    the end of a line are left out. A word that is longer than a line is broken.
    """
    lines: list[str] = []
    line, used, start = "", 0, count_columns(indent)
    for chunk in _list_chunks(text, width - start):
        size = count_columns(chunk)
        if used + size > width:
            lines.append(line.rstrip())
            line, used = indent, start
        if used > start or not lines or not chunk.isspace():
            line, used = line + chunk, used + size
    return [*lines, line.rstrip()]


def _list_chunks(text: str, most: int) -> Iterator[str]:
    """Yield words and blanks, and the characters of words of more than `most` columns."""
    for chunk in _CHUNKS.findall(text.expandtabs().rstrip()):
        if chunk.isspace():
            yield " " * len(chunk)
        elif count_columns(chunk) <= most:
            yield chunk
        else:
            yield from chunk
