"""Parsed values with their location in the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_DEPTH = 32
"""Limit of nested values; a scenario needs five."""


class LocatedProblem(Exception):  # noqa: N818 - internal, converted to InputError
    """A problem of a file at a line (from 1) and, in a table, a column."""

    def __init__(self, line: int, message: str, column: str | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.message = message
        self.column = column


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A mapping (dict[str, LocatedValue]), a list (tuple[LocatedValue, ...]) or a scalar."""

    value: Any
    line: int
    """From 1; for a mapping's value the line of its key."""
    column: str | None = None
    """Name of the column in a table."""

    def find(self, path: Iterable[str | int]) -> LocatedValue:
        """Return the value at a path, or its closest existing ancestor."""
        found = self
        for part in path:
            if isinstance(found.value, Mapping) and part in found.value:
                found = found.value[part]
            elif isinstance(found.value, tuple) and isinstance(part, int):
                found = found.value[part] if part < len(found.value) else found
        return found

    def to_plain(self) -> Any:
        """Return the value without locations."""
        if isinstance(self.value, Mapping):
            return {key: item.to_plain() for key, item in self.value.items()}
        if isinstance(self.value, tuple):
            return [item.to_plain() for item in self.value]
        return self.value


class LocatedKey(NamedTuple):
    """A mapping's key and its line."""

    name: str
    line: int


def build_mapping(pairs: Iterable[tuple[LocatedKey, LocatedValue]]) -> dict[str, LocatedValue]:
    """Build a mapping. Raises FileProblem for a duplicate key."""
    found: dict[str, LocatedValue] = {}
    for key, item in pairs:
        if key.name in found:
            raise LocatedProblem(
                key.line,
                f"key {key.name!r} is there twice (first in line {found[key.name].line}); "
                "keep one of them",
            )
        found[key.name] = LocatedValue(item.value, key.line)
    return found


def require_utf8_text(text: str, line: int) -> str:
    """Return the text. Raises FileProblem if it cannot be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise LocatedProblem(
            line, "holds half of a character (a lone surrogate); write it whole"
        ) from None
    return text
