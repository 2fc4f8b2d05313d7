"""JSON with the line of every value, read value by value with the standard decoder."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NoReturn

from ci_agent_eval.contract.located_value import (
    MAX_DEPTH,
    LocatedKey,
    LocatedProblem,
    LocatedValue,
    build_mapping,
    require_utf8_text,
)

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
