"""The report for a terminal."""

from __future__ import annotations

from dataclasses import dataclass

RED, GREEN, YELLOW, BLUE, BOLD, DIM = "31", "32", "33", "34", "1", "2"


@dataclass(frozen=True, slots=True)
class TerminalStyle:
    """Width of the lines, and whether they are in colour."""

    width: int
    color: bool

    def paint(self, text: str, code: str) -> str:
        """Return the text in a colour, unchanged without colours."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else text
