"""Values of a file with their lines, and the error for an invalid value."""

from __future__ import annotations

from dataclasses import dataclass


class InvalidSetting(Exception):  # noqa: N818 - read as `raise InvalidSetting(line, "must be …")`
    """A value of a file is invalid; `line` is 1-based."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value with its 1-based line: a scalar, or a tuple or dict of located values."""

    value: object
    line: int
