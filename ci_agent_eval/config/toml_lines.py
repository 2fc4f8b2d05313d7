"""Approximate line numbers of keys in a TOML text, for error messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_HEADER = re.compile(r"\s*\[")


def find_line(text: str, location: Sequence[str], unknown: str | None = None) -> int | None:
    """Return the 1-based line of a wrong key, or of the table that lacks it.

    `location` is the path of keys, with list positions as numbers; `unknown` is an unknown key
    below it.
    """
    lines = list(enumerate(text.splitlines(), start=1))
    names = ([] if unknown is None else [unknown]) + list(reversed(location))
    entry = _find_entry(lines, location)
    for name in names:
        for number, line in entry or lines:
            if _is_key_line(name, line):
                return number
    return entry[0][0] if entry else None


def _is_key_line(name: str, line: str) -> bool:
    pattern = rf"\s*(?:\[\[?[\w.]*)?[\"']?{re.escape(name)}[\"']?\s*(?:=|\]|\.)"
    return re.match(pattern, line) is not None


def _find_entry(
    lines: Sequence[tuple[int, str]], location: Sequence[str]
) -> Sequence[tuple[int, str]] | None:
    """Return the lines of the `[[…]]` entry that contains the location; None if there is none."""
    if len(location) < 2 or not location[1].isdecimal():
        return None
    heads = [at for at, (_, line) in enumerate(lines) if _is_entry_header(location[0], line)]
    position = int(location[1])
    return list(_take_entry(lines[heads[position] :])) if position < len(heads) else None


def _is_entry_header(name: str, line: str) -> bool:
    return re.match(rf"\s*\[\[\s*(?:[\w-]+\.)*{re.escape(name)}\s*\]\]", line) is not None


def _take_entry(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield lines[0]
    for number, line in lines[1:]:
        if _HEADER.match(line):
            return
        yield number, line
