"""JSON of result files without duplicate keys, and the problems of such files."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from jiter import from_json

from ci_agent_eval.contract.findings import FindingKind

_MAX_PROBLEM = 300
_POSITION = re.compile(r" at line (\d+) column (\d+)$")
_DUPLICATE = ("it is not JSON: Detected duplicate key", "it has the duplicate key")


class ReadProblem(NamedTuple):
    """A problem of a file; reading continues after it if possible."""

    message: str
    line: int = 0
    cut: bool = False
    """Whether it is an incomplete last line: its writer was killed."""
    kind: FindingKind = "unreadable_file"


class MalformedError(ValueError):
    """A text that is not JSON or not an episode, with the reason and its line (0: unknown)."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def parse_json(text: bytes) -> Any:
    """Parse JSON without duplicate keys.

    Raises MalformedError with the column, and the line where there are several.
    """
    try:
        return from_json(text, catch_duplicate_keys=True)
    except ValueError as error:
        position = _POSITION.search(str(error))
        reason = f"it is not JSON: {_POSITION.sub('', str(error))}".replace(*_DUPLICATE)
        if position is None:
            raise MalformedError(limit_length(reason)) from error
        line, column = int(position[1]), position[2]
        sentence = limit_length(f"{reason} at column {column}")
        raise MalformedError(sentence, line) from error


def limit_length(text: str) -> str:
    """Cut a long problem at its end."""
    return text if len(text) <= _MAX_PROBLEM else f"{text[:_MAX_PROBLEM]}…"
