"""A value of a file with its line, and what is wrong with one."""

from __future__ import annotations

from dataclasses import dataclass


class InvalidSetting(Exception):  # noqa: N818 - read as `raise Wrong(line, "must be …")`
    """Something in a file cannot be used; `line` is 1-based."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(sentence)
        self.line = line


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value and the 1-based line it stands on: a scalar, a tuple or a dict of these."""

    value: object
    line: int
