"""Loading of scenario files: YAML, JSON, JSON lines or CSV, by suffix."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ci_agent_eval.authoring.scenarios.parts import PartProblem, ReadFile, build_parts
from ci_agent_eval.authoring.scenarios.scenario import Scenario
from ci_agent_eval.authoring.scenarios.validation import LocatedEntry, validate_scenarios
from ci_agent_eval.contract.iteration_range import AUTO
from ci_agent_eval.contract.located_value import (
    LocatedProblem,
    LocatedValue,
    parse_located_json,
    parse_located_json_lines,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import open_regular

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
            raise LocatedProblem(max(reader.line_num, line), f"is not CSV: {error}") from None
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
        raise LocatedProblem(line, f"the cell is not JSON: {error}", name) from None


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


MAX_BYTES = 1_048_576
"""Size limit of a file: a few thousand scenarios. PyYAML reads about 0.2 MB per second."""

MAX_ATTACHED_BYTES = 10_485_760
"""Size limit of a file in a message."""

_MAX_PROBLEMS = 20
"""Problems of one file in an error message."""


def _parse_yaml(text: str) -> LocatedValue | None:
    from ci_agent_eval.contract.located_yaml import parse_located_yaml  # noqa: PLC0415 - an extra

    return parse_located_yaml(text)


PARSERS: Mapping[str, Callable[[str], LocatedValue | None]] = {
    ".yaml": _parse_yaml,
    ".yml": _parse_yaml,
    ".json": parse_located_json,
    ".jsonl": parse_located_json_lines,
    ".csv": parse_located_csv,
}
"""The parser of each suffix."""


def load_scenarios(path: Path, name: str | None = None) -> tuple[Scenario, ...]:
    """Load the scenarios of a file, which is called `name` in messages.

    Raises InputError, which lists every problem with file and line.
    """
    shown = name or str(path)

    @cache  # a file of many scenarios is read and held once
    def read(file: str) -> bytes:
        found = _find_attached(path, file)
        return _read_file(found, file, MAX_ATTACHED_BYTES, "the scenario file")

    return parse_scenarios(_read_file(path, shown, MAX_BYTES, "the test's file"), shown, read)


def _find_attached(path: Path, file: str) -> Path:
    """Return the path of a file in a message. Raises InputError outside the scenario's folder."""
    folder = path.parent.resolve()
    try:
        found = (folder / file).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{file!r}: is not a path ({error})") from None
    if not found.is_relative_to(folder):
        raise InputError(f"{file}: must be in the folder of the scenario file, or below it")
    return found


def _refuse_files(file: str) -> bytes:
    raise InputError(f"{file}: cannot be read, because the scenarios are in no file")


def parse_scenarios(data: bytes, name: str, read: ReadFile = _refuse_files) -> tuple[Scenario, ...]:
    """Parse the scenarios of a file's bytes; the suffix of `name` selects the format.

    `read` returns the bytes of a file in a message.

    Raises InputError, as `load_scenarios` does.
    """
    parse = PARSERS.get(Path(name).suffix.lower())
    if parse is None:
        known = ", ".join(PARSERS)
        raise InputError(f"{name}: its format is not known by its name; end it in {known}")
    try:
        entries, problems = validate_scenarios(parse(_decode_text(data, name)))
    except LocatedProblem as problem:
        raise InputError(_format_problem(name, problem)) from None
    if problems:
        raise InputError(_format_problems(name, problems))
    return _build_scenarios(entries, name, read)


def _build_scenarios(
    entries: Iterable[LocatedEntry], name: str, read: ReadFile
) -> tuple[Scenario, ...]:
    """Build the scenarios with their steps and checks. Raises InputError with every problem."""
    found: list[Scenario] = []
    problems: list[LocatedProblem] = []
    for entry, line, located in entries:
        try:
            parts = build_parts(entry, read)
        except PartProblem as problem:
            place = located.find(problem.path)
            where = "" if place.column else f"{'.'.join(map(str, problem.path))}: "
            problems.append(LocatedProblem(place.line, f"{where}{problem}", place.column))
        else:
            found.append(Scenario(entry, name, line, parts))
    if problems:
        raise InputError(_format_problems(name, problems))
    return tuple(found)


def _read_file(path: Path, name: str, max_bytes: int, beside: str) -> bytes:
    """Return a file's bytes. Raises InputError; its path is relative to the file `beside`."""
    try:
        with open_regular(path, follow=True) as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise InputError(
            f"{name}: cannot be read ({error.strerror}); write its path relative to {beside}"
        ) from None
    except ValueError as error:
        raise InputError(f"{name!r}: is not a path ({error})") from None
    if len(data) > max_bytes:
        raise InputError(f"{name}: is larger than {max_bytes} bytes; make it smaller, or split it")
    return data


def _decode_text(data: bytes, name: str) -> str:
    """Decode UTF-8, with or without its byte order mark. Raises InputError."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{name}: is UTF-16; save it as UTF-8")
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        # All three line ends count: CSV of old Macs has carriage returns only.
        line = len((data[: error.start] + b"x").splitlines())
        raise InputError(f"{name}:{line}: is not UTF-8; save it as UTF-8") from None


def _format_problem(name: str, problem: LocatedProblem) -> str:
    column = f"column {problem.column!r}: " if problem.column else ""
    return f"{name}:{problem.line}: {column}{problem.message}"


def _format_problems(name: str, problems: list[LocatedProblem]) -> str:
    lines = [_format_problem(name, problem) for problem in problems[:_MAX_PROBLEMS]]
    more = len(problems) - _MAX_PROBLEMS
    return "\n".join(lines + ([f"{name}: and {more} more problems"] if more > 0 else []))
