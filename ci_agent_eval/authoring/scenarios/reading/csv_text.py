"""CSV as scenarios: one a row, columns named as the keys, `budgets.tool_calls` for inner ones.

A cell of a list is JSON (`["a", "b"]`) or texts with `|` between them. An empty cell is not
given.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from ci_agent_eval.authoring.scenarios.reading.located import Located, Problem

TABLES = ("budgets", "checks", "goal", "metadata")
"""Keys that have inner ones."""

LISTS = frozenset(
    {"allowed_stops", "fixed_responses", "script", "tags"}
    | {
        f"checks.{kind}_{what}"
        for kind in ("required", "forbidden")
        for what in ("tools", "text", "patterns")
    }
    | {"checks.ordered_tools", "checks.confirmed_tools"}
)
NUMBERS = frozenset(
    {"max_turns", "max_history_messages", "min_pass_rate", "min_passes", "iterations"}
    | {"checks.max_tool_calls"}
)
_NUMBER_TABLES = ("budgets.", "checks.tool_limits.")
_WHOLE = re.compile(r"[-+]?[0-9]{1,300}")


def parse_csv(text: str) -> Located | None:
    """Parse CSV as a list of scenarios; None where there is nothing. Raises Problem."""
    rows = _rows(text)
    header = next(rows, None)
    if header is None:
        return None
    names = _names(*header)
    return Located(tuple(_scenario(names, line, cells) for line, cells in rows), header[0])


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that hold anything, each with its first line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise Problem(max(reader.line_num, line), f"is no CSV: {error}") from None
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield line, cells
        line = reader.line_num + 1


def _names(line: int, header: list[str]) -> list[str]:
    names = [name.strip() for name in header]
    if len(names) == 1 and re.search(r"[;\t]", names[0]):
        raise Problem(line, "its columns are not separated by commas; save it with commas")
    for place, name in enumerate(names):
        if not name:
            raise Problem(line, f"column {place + 1} has no name; name it, or take it away")
        if name in names[:place]:
            raise Problem(line, f"column {name!r} is there twice; keep one of them", name)
    return names


def _scenario(names: list[str], line: int, cells: list[str]) -> Located:
    if len(cells) != len(names):
        raise Problem(
            line,
            f"the row has {len(cells)} cells, the header {len(names)}; put a cell that holds "
            "a comma in double quotes",
        )
    whole: dict[str, Located] = {}
    for name, cell in zip(names, cells, strict=True):
        if cell.strip():
            _put(whole, name, Located(_typed(name, cell, line), line, name))
    return Located(whole, line)


def _put(whole: dict[str, Located], name: str, item: Located) -> None:
    """Put a cell where its column's name says, making the tables on the way."""
    here = whole
    *tables, last = _path(name)
    for table in tables:
        inner = here.setdefault(table, Located({}, item.line, item.column))
        if not isinstance(inner.value, dict):
            raise Problem(item.line, f"{table!r} has a column of its own already", item.column)
        here = inner.value
    if last in here:
        raise Problem(item.line, f"{last!r} has columns of its own already", item.column)
    here[last] = item


def _path(name: str) -> list[str]:
    """Return the keys that a column stands for; tools and budgets may have dots of their own."""
    table, dot, rest = name.partition(".")
    if not dot or table not in TABLES:
        return [name]
    if name.startswith("checks.tool_limits."):
        return ["checks", "tool_limits", name.removeprefix("checks.tool_limits.")]
    if name.startswith("budgets.custom."):
        return ["budgets", "custom", name.removeprefix("budgets.custom.")]
    return [table, rest]


def _typed(name: str, cell: str, line: int) -> Any:
    listed, table = name in LISTS, name in TABLES and name != "goal"
    if (listed or table) and cell.lstrip()[:1] in {"[", "{"}:
        return _json(name, cell, line)
    if listed:
        texts = (text.strip() for text in cell.split("|"))
        return tuple(Located(text, line, name) for text in texts if text)
    if name in NUMBERS or name.startswith(_NUMBER_TABLES):
        return _number(name, cell.strip(), line)
    return cell.strip()


def _json(name: str, cell: str, line: int) -> Any:
    try:
        return _placed(json.loads(cell), name, line).value
    except (ValueError, RecursionError) as error:
        raise Problem(line, f"the cell is no JSON: {error}", name) from None


def _placed(value: Any, name: str, line: int) -> Located:
    if isinstance(value, dict):
        inner = {key: _placed(item, name, line) for key, item in value.items()}
        return Located(inner, line, name)
    if isinstance(value, list):
        return Located(tuple(_placed(item, name, line) for item in value), line, name)
    return Located(value, line, name)


def _number(name: str, cell: str, line: int) -> int | float:
    try:
        return int(cell) if _WHOLE.fullmatch(cell) else float(cell)
    except ValueError:
        raise Problem(line, f"must be a number (got {cell[:40]!r})", name) from None
