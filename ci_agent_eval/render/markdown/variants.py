"""Variants side by side, as Markdown tables."""

from __future__ import annotations

from ci_agent_eval.render.escape import code_span
from ci_agent_eval.render.markdown.blocks import TableColumn, render_table
from ci_agent_eval.render.numbers import count_noun
from ci_agent_eval.render.variants import VariantsView, VariantTable


def render_variants(view: VariantsView, most: int) -> str:
    """Return two tables of each pair; `most` is the number of scenarios in each."""
    parts = [part for table in view.tables for part in _render_pair(table, most)]
    return "\n\n".join(part for part in (*parts, view.rest, view.method) if part)


def _render_pair(table: VariantTable, most: int) -> tuple[str, ...]:
    names = [code_span(name, cell=True) for name in (table.first, table.second)]
    columns = [TableColumn(name, figures=True) for name in names]
    difference = TableColumn(f"{names[1]} − {names[0]}")  # noqa: RUF001 - a minus
    figures = render_table(
        [TableColumn(table.population), *columns, difference, TableColumn("")],
        [(row.label, row.first, row.second, row.difference, row.certainty) for row in table.rows],
    )
    scenarios = render_table(
        [TableColumn("scenario"), *columns, TableColumn("")],
        [
            (code_span(one.name, limit=120, cell=True), one.first, one.second, one.certainty)
            for one in table.scenarios[:most]
        ],
    )
    rest = len(table.scenarios) - most
    more = f"and {count_noun(rest, 'more scenario')}" if rest > 0 else ""
    return figures, scenarios, more
