"""Colours and line breaks of the terminal report."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
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


def wrap_text(text: str, width: int, indent: str = "") -> Sequence[str]:
    """Return the text in lines of at most `width` characters, at least one line.

    `indent` is put before all lines but the first.
    """
    found = textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)
    return found or [""]
