"""Values as they were read, each with the place where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_DEPTH = 32
"""Values inside of values; a scenario needs five."""


class FileProblem(Exception):  # noqa: N818 - the reader's own, never shown as it is
    """Something is wrong with a file, at this line (1-based) and, in a table, this column."""

    def __init__(self, line: int, message: str, column: str | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.message = message
        self.column = column


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value: of a mapping dict[str, Located], of a list tuple[Located, ...], or a scalar."""

    value: Any
    line: int
    """1-based; of a mapping's value the line of its key."""
    column: str | None = None
    """The name of the column, in a table."""

    def at(self, path: Iterable[str | int]) -> LocatedValue:
        """Return what stands at a path, or the last on the way there that there is."""
        here = self
        for part in path:
            if isinstance(here.value, Mapping) and part in here.value:
                here = here.value[part]
            elif isinstance(here.value, tuple) and isinstance(part, int):
                here = here.value[part] if part < len(here.value) else here
        return here

    def plain(self) -> Any:
        """Return the value alone."""
        if isinstance(self.value, Mapping):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, tuple):
            return [item.plain() for item in self.value]
        return self.value


class LocatedKey(NamedTuple):
    """The name of an entry, and where it stands."""

    name: str
    line: int


def build_mapping(pairs: Iterable[tuple[LocatedKey, LocatedValue]]) -> dict[str, LocatedValue]:
    """Return a mapping. Raises Problem for a key that is there twice."""
    found: dict[str, LocatedValue] = {}
    for key, item in pairs:
        if key.name in found:
            raise FileProblem(
                key.line,
                f"key {key.name!r} is there twice (first in line {found[key.name].line}); "
                "keep one of them",
            )
        found[key.name] = LocatedValue(item.value, key.line)
    return found


def require_utf8_text(text: str, line: int) -> str:
    """Return a text that can be written as UTF-8. Raises Problem."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FileProblem(
            line, "holds half of a character (a lone surrogate); write it whole"
        ) from None
    return text
