"""JSON with the line of every value: the standard library's decoder, value by value."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NoReturn

from ci_agent_eval.authoring.scenarios.reading.located_value import (
    MAX_DEPTH,
    FileProblem,
    LocatedKey,
    LocatedValue,
    build_mapping,
    require_utf8_text,
)

_SPACE = re.compile(r"[ \t\n\r]*")


def parse_located_json(text: str) -> LocatedValue | None:
    """Parse JSON; None where there is nothing. Raises Problem."""
    if not text.strip():
        return None
    try:
        json.loads(text, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        raise FileProblem(
            error.lineno, f"is no JSON: {error.msg} (character {error.colno})"
        ) from None
    except RecursionError:
        raise FileProblem(1, "is nested too deep; write it flat") from None
    except ValueError as error:
        raise FileProblem(1, f"is no JSON that can be read: {error}") from None
    return _LocatingParser(text).document()


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


class _LocatingParser:
    """Goes through a text that is known to be JSON, to see where each value stands."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends = [found.start() for found in re.finditer("\n", text)]
        self._decode: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().raw_decode
        self._place = 0

    def document(self) -> LocatedValue:
        return self._value(0)

    def _value(self, depth: int) -> LocatedValue:
        line = self._skip()
        if depth > MAX_DEPTH:
            raise FileProblem(line, "is nested too deep; write it flat")
        first = self._text[self._place]
        if first == "{":
            return LocatedValue(self._object(depth), line)
        if first == "[":
            return LocatedValue(self._array(depth), line)
        return LocatedValue(self._scalar(line), line)

    def _object(self, depth: int) -> dict[str, LocatedValue]:
        pairs: list[tuple[LocatedKey, LocatedValue]] = []
        self._place += 1
        while not self._ends_with("}"):
            line = self._skip()
            key = LocatedKey(self._scalar(line), line)
            self._skip()
            self._place += 1  # the colon
            pairs.append((key, self._value(depth + 1)))
        return build_mapping(pairs)

    def _array(self, depth: int) -> tuple[LocatedValue, ...]:
        items: list[LocatedValue] = []
        self._place += 1
        while not self._ends_with("]"):
            items.append(self._value(depth + 1))
        return tuple(items)

    def _ends_with(self, bracket: str) -> bool:
        """Say whether the list of values ends here; go past its end, or past a comma."""
        self._skip()
        found = self._text[self._place]
        self._place += found in {bracket, ","}
        return found == bracket

    def _scalar(self, line: int) -> Any:
        value, self._place = self._decode(self._text, self._place)
        return require_utf8_text(value, line) if isinstance(value, str) else value

    def _skip(self) -> int:
        """Go past white space; return the line of what comes."""
        space = _SPACE.match(self._text, self._place)
        self._place = self._place if space is None else space.end()
        return bisect_right(self._ends, self._place) + 1
