"""CSV scenarios: one per row; a column is a key, or a nested one (`budgets.tool_calls`).

A list's cell is JSON (`["a", "b"]`) or texts separated by `|`. An empty cell means: not set.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from ci_agent_eval.contract.iteration_range import AUTO
from ci_agent_eval.contract.located_value import LocatedProblem, LocatedValue

TABLES = ("budgets", "checks", "goal", "judge", "metadata", "private_facts")
"""Keys with nested keys."""

LISTS = frozenset(
    {
        "allowed_stops",
        "depends_on",
        "expect",
        "faults",
        "fixed_responses",
        "script",
        "steps",
        "tags",
    }
    | {
        f"checks.{kind}_{noun}"
        for kind in ("required", "forbidden")
        for noun in ("tools", "text", "patterns")
    }
    | {"checks.ordered_tools", "judge.success", "judge.must_hold"}
)
NUMBERS = frozenset(
    {"max_turns", "max_history_messages", "min_pass_rate", "min_passes", "iterations"}
    | {"checks.max_tool_calls"}
)
_NUMBER_TABLES = ("budgets.", "checks.tool_limits.")
_WHOLE = re.compile(r"[-+]?[0-9]{1,300}")


def parse_located_csv(text: str) -> LocatedValue | None:
    """Parse CSV as a list of scenarios; None if it is empty. Raises FileProblem."""
    rows = _read_rows(text)
    header = next(rows, None)
    if header is None:
        return None
    names = _parse_header(*header)
    return LocatedValue(tuple(_parse_row(names, line, cells) for line, cells in rows), header[0])


def _read_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with its first line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise LocatedProblem(max(reader.line_num, line), f"is no CSV: {error}") from None
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield line, cells
        line = reader.line_num + 1


def _parse_header(line: int, header: list[str]) -> list[str]:
    names = [name.strip() for name in header]
    if len(names) == 1 and re.search(r"[;\t]", names[0]):
        raise LocatedProblem(line, "its columns are not separated by commas; save it with commas")
    for index, name in enumerate(names):
        if not name:
            raise LocatedProblem(line, f"column {index + 1} has no name; name it, or take it away")
        if name in names[:index]:
            raise LocatedProblem(line, f"column {name!r} is there twice; keep one of them", name)
    return names


def _parse_row(names: list[str], line: int, cells: list[str]) -> LocatedValue:
    if len(cells) != len(names):
        raise LocatedProblem(
            line,
            f"the row has {len(cells)} cells, the header {len(names)}; put a cell that holds "
            "a comma in double quotes",
        )
    row: dict[str, LocatedValue] = {}
    for name, cell in zip(names, cells, strict=True):
        if cell.strip():
            _insert_cell(row, name, LocatedValue(_parse_cell(name, cell, line), line, name))
    return LocatedValue(row, line)


def _insert_cell(row: dict[str, LocatedValue], name: str, item: LocatedValue) -> None:
    """Insert a cell at the path of its column, creating the tables on the way."""
    parent = row
    *tables, last = _split_column_name(name)
    for table_name in tables:
        inner = parent.setdefault(table_name, LocatedValue({}, item.line, item.column))
        if not isinstance(inner.value, dict):
            message = f"{table_name!r} has a column of its own already"
            raise LocatedProblem(item.line, message, item.column)
        parent = inner.value
    if last in parent:
        raise LocatedProblem(item.line, f"{last!r} has columns of its own already", item.column)
    parent[last] = item


def _split_column_name(name: str) -> list[str]:
    """Split a column's name into keys; names of tools and custom budgets may contain dots."""
    table_name, dot, rest = name.partition(".")
    if not dot or table_name not in TABLES:
        return [name]
    if name.startswith("checks.tool_limits."):
        return ["checks", "tool_limits", name.removeprefix("checks.tool_limits.")]
    if name.startswith("budgets.custom."):
        return ["budgets", "custom", name.removeprefix("budgets.custom.")]
    return [table_name, rest]


def _parse_cell(name: str, cell: str, line: int) -> Any:
    is_list, is_table = name in LISTS, name in TABLES and name != "goal"
    if (is_list or is_table) and cell.lstrip()[:1] in {"[", "{"}:
        return _parse_json_cell(name, cell, line)
    if is_list:
        texts = (text.strip() for text in cell.split("|"))
        return tuple(LocatedValue(text, line, name) for text in texts if text)
    if name in NUMBERS or name.startswith(_NUMBER_TABLES):
        is_adaptive = name == "iterations" and cell.strip().startswith(AUTO)
        return cell.strip() if is_adaptive else _parse_number(name, cell.strip(), line)
    return cell.strip()


def _parse_json_cell(name: str, cell: str, line: int) -> Any:
    try:
        return _locate_value(json.loads(cell), name, line).value
    except (ValueError, RecursionError) as error:
        raise LocatedProblem(line, f"the cell is no JSON: {error}", name) from None


def _locate_value(value: Any, name: str, line: int) -> LocatedValue:
    if isinstance(value, dict):
        inner = {key: _locate_value(item, name, line) for key, item in value.items()}
        return LocatedValue(inner, line, name)
    if isinstance(value, list):
        return LocatedValue(tuple(_locate_value(item, name, line) for item in value), line, name)
    return LocatedValue(value, line, name)


def _parse_number(name: str, cell: str, line: int) -> int | float:
    try:
        return int(cell) if _WHOLE.fullmatch(cell) else float(cell)
    except ValueError:
        raise LocatedProblem(line, f"must be a number (got {cell[:40]!r})", name) from None
