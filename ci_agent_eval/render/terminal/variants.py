"""Variants side by side, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ci_agent_eval.contract.columns import count_columns, wrap_columns
from ci_agent_eval.render.escape import escape_terminal
from ci_agent_eval.render.numbers import count_noun
from ci_agent_eval.render.terminal.layout import BOLD, TerminalStyle
from ci_agent_eval.render.variants import VariantsView, VariantTable, shorten_names

MOST_SCENARIOS = 10
"""Scenarios that are listed because they differ."""
_NAME_LIMIT = 24


def render_variants(view: VariantsView, style: TerminalStyle) -> Iterator[str]:
    """Yield a small table of each pair, and the scenarios in which its pass rates differ."""
    yield style.paint(f"── {view.title}", BOLD)
    listed = dict.fromkeys(name for table in view.tables for name in (table.first, table.second))
    names = shorten_names(list(listed), _NAME_LIMIT)
    for table in view.tables:
        yield from _render_pair(table, names, style)
    if view.rest:
        yield f"  {view.rest}"


def _render_pair(
    table: VariantTable, shortened: Mapping[str, str], style: TerminalStyle
) -> Iterator[str]:
    first, second = (escape_terminal(shortened[name]) for name in (table.first, table.second))
    rows = [(table.population, first, second, f"{second} − {first}")]  # noqa: RUF001 - a minus
    rows += [
        (row.label, row.first, row.second, ", ".join(filter(None, (row.difference, row.certainty))))
        for row in table.rows
    ]
    widths = [max(count_columns(row[at]) for row in rows) for at in range(3)]
    for row in rows:
        yield from wrap_columns(f"  {_align(row, widths)}", style.width, "    ")
    differing = [row for row in table.scenarios if row.certainty]
    for one in differing[:MOST_SCENARIOS]:
        name = escape_terminal(one.name, 60)
        text = f"  {one.certainty}: {name}, {one.first} and {one.second}"
        yield from wrap_columns(text, style.width, "    ")
    if (rest := len(differing) - MOST_SCENARIOS) > 0:
        yield f"  and {count_noun(rest, 'more scenario')}"


def _align(row: Sequence[str], widths: Sequence[int]) -> str:
    """Join the cells: the label from the left, both figures from the right."""
    label, *cells = (
        (cell, " " * (width - count_columns(cell)))
        for cell, width in zip(row[:3], widths, strict=True)
    )
    return "  ".join([f"{label[0]}{label[1]}", *(f"{pad}{cell}" for cell, pad in cells), row[3]])
