"""Files of records: a JSON object on each line, a JSON list of objects, or CSV.

They become one document, `{"records": [...], "name": file name}`, for the importers.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ci_agent_eval.results.importers.protocol import ToolDocument
from ci_agent_eval.results.importers.values import as_list
from ci_agent_eval.results.json_text import MalformedError, ReadProblem, parse_json

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
            yield ReadProblem("it is no JSON object", number)


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
        yield ReadProblem(f"it is no CSV in UTF-8: {error}")
        return
    if not data.endswith(b"\n"):
        yield ReadProblem(_CUT)
