"""Untyped JSON values, of which one of another type counts as missing, and files of records.

Records are a JSON object on each line, a JSON list of objects, or CSV. They become one document,
`{"records": [...], "name": file name}`, for the importers.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.contract.wording import one_line
from ci_agent_eval.results.importers.protocol import ToolDocument
from ci_agent_eval.results.json_text import MalformedError, ReadProblem, parse_json

MAX_AMOUNT = 1e15
"""The largest amount in the contract."""

_MAX_NAME = 200


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[Any]:
    """Return a JSON list, or an empty one."""
    return value if isinstance(value, list) else ()


def as_objects(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the items of a list as objects; any other item becomes an empty object."""
    return (as_mapping(item) for item in as_list(value))


def as_text(value: object) -> str | None:
    """Return a string that is not blank, or None."""
    return value if isinstance(value, str) and value.strip() else None


def as_number(value: object) -> float | None:
    """Return a finite number, or None; booleans are no numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -MAX_AMOUNT <= value <= MAX_AMOUNT and math.isfinite(value) else None


def as_amount(value: object) -> float | None:
    """Return a number that is not negative, or None."""
    found = as_number(value)
    return found if found is not None and found >= 0 else None


def as_count(value: object) -> int | None:
    """Return an integer that is not negative, or None."""
    found = as_amount(value)
    return int(found) if found is not None and found == int(found) else None


def as_share(value: object) -> float | None:
    """Return a number from 0 to 1, or None."""
    found = as_amount(value)
    return found if found is not None and found <= 1 else None


def as_milliseconds(seconds: object) -> float | None:
    """Convert seconds to milliseconds; None if they are no amount."""
    found = as_amount(seconds)
    return None if found is None else as_amount(found * 1000)


def build_usage(prompt: object, completion: object, cached: object = None) -> dict[str, int] | None:
    """Build the usage of one turn; None unless both input and output tokens are known."""
    tokens_in, tokens_out = as_count(prompt), as_count(completion)
    if tokens_in is None or tokens_out is None:
        return None
    return {
        "input": tokens_in,
        "output": tokens_out,
        "cached": min(as_count(cached) or 0, tokens_in),
    }


def format_content(value: object) -> str:
    """Return a string unchanged, None as an empty string, and anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False)


def as_name(value: object) -> str:
    """Format a value on one line, cut to the length of a name."""
    line = one_line(format_content(value))
    return line if len(line) <= _MAX_NAME else f"{line[:_MAX_NAME]}…"


Record = dict[str, Any]

_CUT = "its last line is cut off; write the file again"


def build_document(value: object, name: str) -> Record | None:
    """Return an object as it is, a list of objects as a document of records, else None."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return {"records": value, "name": name}
    return None


def get_records(document: ToolDocument) -> Sequence[Record]:
    """Return the records of a document; empty if it has none."""
    records = as_list(document.get("records"))
    return records if all(isinstance(record, dict) for record in records) else ()


def parse_json_lines(data: bytes) -> Iterator[Record | ReadProblem]:
    """Yield the object on each line that is not blank, or the problem of the line."""
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        try:
            value = parse_json(line) if line.strip() else None
        except MalformedError as error:
            yield ReadProblem(str(error) if line.endswith(b"\n") else _CUT, number)
            continue
        if isinstance(value, dict):
            yield value
        elif line.strip():
            yield ReadProblem("it is not a JSON object", number)


def parse_csv(data: bytes) -> Iterator[Record | ReadProblem]:
    """Yield each row by its column names, or its problem."""
    try:
        rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        header = next(rows, [])
        repeated = [name for name, count in Counter(header).items() if count > 1]
        if repeated:
            yield ReadProblem(f"it has two columns {repeated[0]!r}; rename one of them", 1)
            return
        for row in rows:
            if len(row) == len(header):
                yield dict(zip(header, row, strict=True))
            elif row:
                counts = f"it has {len(row)} cells, and the header has {len(header)}"
                yield ReadProblem(counts, rows.line_num)
    except (UnicodeDecodeError, csv.Error) as error:
        yield ReadProblem(f"it is not CSV in UTF-8: {error}")
        return
    if not data.endswith(b"\n"):
        yield ReadProblem(_CUT)
