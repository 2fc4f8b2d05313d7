"""The layout of the terminal report: blocks of entries in columns, wrapped to the width."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ci_agent_eval.render.numbers import format_count

T = TypeVar("T")

MIN_TEXT = 30
"""In fewer columns a text starts on a new line."""
MOST_LINES = 50
"""Most lines of a section; the rest is counted."""

RED, GREEN, YELLOW, BOLD, DIM = "31", "32", "33", "1", "2"


@dataclass(frozen=True, slots=True)
class TerminalEntry:
    """One line of a block: a name, a figure, and a text that may be long."""

    name: str
    figure: str
    text: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class TerminalStyle:
    """Width of the lines, and whether they are in colour."""

    width: int
    color: bool

    def paint(self, text: str, code: str) -> str:
        """Return the text in a colour, unchanged without colours."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else text


def render_block(
    title: str,
    found: Sequence[T],
    entry: Callable[[T], TerminalEntry],
    style: TerminalStyle,
    code: str,
    *,
    most: int = MOST_LINES,
    heading: TerminalEntry | None = None,
) -> str:
    """Return a title with the number of entries, and the entries; empty without any."""
    if not found:
        return ""
    counted_ = style.paint(f"{title} ({format_count(len(found))})", f"{BOLD};{code}")
    return "\n".join([counted_, *render_entries(found, entry, style, most=most, heading=heading)])


def render_titled_block(
    title: str,
    found: Sequence[T],
    entry: Callable[[T], TerminalEntry],
    style: TerminalStyle,
    code: str,
) -> str:
    """Return a title without a number, and the entries; empty without any."""
    if not found:
        return ""
    lines = (style.paint(line, f"{BOLD};{code}") for line in wrap_text(title, style.width))
    return "\n".join([*lines, *render_entries(found, entry, style)])


def render_entries(
    found: Sequence[T],
    entry: Callable[[T], TerminalEntry],
    style: TerminalStyle,
    *,
    most: int = MOST_LINES,
    heading: TerminalEntry | None = None,
) -> Sequence[str]:
    """Return the lines of the first entries in columns, below `heading`."""
    shown = [*filter(None, [heading]), *(entry(item) for item in found[:most])]
    names = max((len(item.name) for item in shown), default=0)
    figure_width = max((len(item.figure) for item in shown), default=0)
    lines: list[str] = []
    for item in shown:
        lines += _render_entry(item, names, figure_width, style)
    if (rest := len(found) - most) > 0:
        lines.append(f"  and {format_count(rest)} more, in verdict.json")
    return lines


def _render_entry(
    item: TerminalEntry, names: int, figures_: int, style: TerminalStyle
) -> Iterator[str]:
    head = f"  {item.name:<{names}}  {item.figure:<{figures_}}".rstrip()
    start = 2 + names + 2 + (figures_ + 2 if figures_ else 0)
    if style.width - start < MIN_TEXT:
        start = 6
        yield head
        head = ""
    texts = [*wrap_text(item.text, style.width - start)]
    for number, line in enumerate(texts):
        yield f"{head if number == 0 else '':<{start}}{line}".rstrip()
    if item.place:
        yield style.paint(f"{'':<{start}}{item.place}", DIM)


def wrap_text(text: str, width: int) -> Sequence[str]:
    """Return the text in lines of at most `width` characters, at least one line."""
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
