"""Parsed values with their location in the file, and the parser of JSON with locations."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

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


_SPACE = re.compile(r"[ \t\n\r]*")


def parse_located_json(text: str) -> LocatedValue | None:
    """Parse JSON; None if it is empty. Raises FileProblem."""
    if not text.strip():
        return None
    try:
        json.loads(text, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        raise LocatedProblem(
            error.lineno, f"is not JSON: {error.msg} (character {error.colno})"
        ) from None
    except RecursionError:
        raise LocatedProblem(1, "is nested too deep; write it flat") from None
    except ValueError as error:
        raise LocatedProblem(1, f"is not JSON that can be read: {error}") from None
    return _LocatingParser(text).parse_document()


def parse_located_json_lines(text: str) -> LocatedValue | None:
    """Parse JSON lines as a list; None if there is none. Raises FileProblem."""
    lines = text.split("\n")
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    if not numbers:
        return None
    for number in numbers:
        try:
            parse_located_json(lines[number])
        except LocatedProblem as problem:
            raise LocatedProblem(number + 1, problem.message) from None
    # A list with the same line ends has the same line numbers.
    for number in numbers[:-1]:
        lines[number] += ","
    lines[numbers[0]] = "[" + lines[numbers[0]]
    lines[numbers[-1]] += "]"
    return parse_located_json("\n".join(lines))


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


class _LocatingParser:
    """Parses a text that is valid JSON, and finds the line of each value."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line_ends = [found.start() for found in re.finditer("\n", text)]
        self._decode: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().raw_decode
        self._position = 0

    def parse_document(self) -> LocatedValue:
        return self._parse_value(0)

    def _parse_value(self, depth: int) -> LocatedValue:
        line = self._skip_space()
        if depth > MAX_DEPTH:
            raise LocatedProblem(line, "is nested too deep; write it flat")
        first = self._text[self._position]
        if first == "{":
            return LocatedValue(self._parse_object(depth), line)
        if first == "[":
            return LocatedValue(self._parse_array(depth), line)
        return LocatedValue(self._parse_scalar(line), line)

    def _parse_object(self, depth: int) -> dict[str, LocatedValue]:
        pairs: list[tuple[LocatedKey, LocatedValue]] = []
        self._position += 1
        while not self._ends_with("}"):
            line = self._skip_space()
            key = LocatedKey(self._parse_scalar(line), line)
            self._skip_space()
            self._position += 1  # the colon
            pairs.append((key, self._parse_value(depth + 1)))
        return build_mapping(pairs)

    def _parse_array(self, depth: int) -> tuple[LocatedValue, ...]:
        items: list[LocatedValue] = []
        self._position += 1
        while not self._ends_with("]"):
            items.append(self._parse_value(depth + 1))
        return tuple(items)

    def _ends_with(self, bracket: str) -> bool:
        """Consume a closing bracket or a comma; return whether it was the bracket."""
        self._skip_space()
        found = self._text[self._position]
        self._position += found in {bracket, ","}
        return found == bracket

    def _parse_scalar(self, line: int) -> Any:
        value, self._position = self._decode(self._text, self._position)
        return require_utf8_text(value, line) if isinstance(value, str) else value

    def _skip_space(self) -> int:
        """Skip white space; return the line of the next character."""
        space = _SPACE.match(self._text, self._position)
        self._position = self._position if space is None else space.end()
        return bisect_right(self._line_ends, self._position) + 1
