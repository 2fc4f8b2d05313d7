"""Blocks of Markdown: tables, lists, details and links, from escaped texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PATH_LIMIT = 160


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A table's column: its title, and whether it holds figures."""

    title: str
    figures: bool = False


def render_table(columns: Sequence[TableColumn], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; every row has a cell for every column and no newline in any."""
    lines = [
        _render_row([column.title for column in columns]),
        "|" + "|".join("---:" if column.figures else "---" for column in columns) + "|",
    ]
    lines += [_render_row(row) for row in rows]
    return "\n".join(lines)


def _render_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def render_list(lines: Iterable[str]) -> str:
    """Return a bullet list of one-line items."""
    return "\n".join(f"- {line}" for line in lines)


def render_details(summary: str, body: str, *, is_open: bool = False) -> str:
    """Return a block that folds; the blank lines make GitHub parse the Markdown in it."""
    tag = "<details open>" if is_open else "<details>"
    return f"{tag}<summary>{summary}</summary>\n\n{body}\n\n</details>"


def render_link(text: str, url: str | None) -> str:
    """Return a link, or only its text where there is no address."""
    return f"[{text}]({url})" if url else text
