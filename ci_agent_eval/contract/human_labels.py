"""Human labels of stored transcripts, which judges are compared with: CSV, or JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.contract.located_value import LocatedProblem

_WORDS = {"pass": True, "true": True, "yes": True, "1": True} | {
    "fail": False,
    "false": False,
    "no": False,
    "0": False,
}
_COLUMNS = ("scenario_id", "iteration", "assertion", "label", "transcript")
LABEL_HEADER = ",".join(_COLUMNS)
"""First line of a file of labels."""


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """A person's verdict on one transcript."""

    scenario_id: str
    passed: bool
    line: int
    """Line of the file, from 1."""
    iteration: int | None = None
    """None: the scenario has one."""
    assertion: str | None = None
    """Name of the assertion that the label is about; None: there is one judged assertion."""
    transcript: str | None = None
    """Digest of the transcript that the person read; None: not compared."""


def parse_labels(text: str, *, is_lines: bool) -> tuple[HumanLabel, ...]:
    """Parse the labels of a file, JSON lines or CSV with a header. Raises LocatedProblem."""
    rows = _read_json_lines(text) if is_lines else _read_table(text)
    found = tuple(_build_label(line, row) for line, row in rows if _has_label(row))
    if not found:
        raise LocatedProblem(1, "has no label; write pass or fail in the column label")
    return found


def _has_label(row: dict[str, Any]) -> bool:
    """Return whether a row is labelled; a blank cell is a transcript that nobody has read yet."""
    return row.get("label") not in ("", None)


def _read_json_lines(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise LocatedProblem(number, f"is no JSON: {error}") from None
        if not isinstance(row, dict):
            raise LocatedProblem(number, "is no object with scenario_id and label")
        yield number, row


def _read_table(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if None in row or None in row.values():
                raise LocatedProblem(reader.line_num, "has another number of cells than the header")
            yield reader.line_num, row
    except csv.Error as error:
        raise LocatedProblem(reader.line_num, f"is no CSV: {error}") from None


def _build_label(line: int, row: dict[str, Any]) -> HumanLabel:
    unknown = sorted(set(row) - set(_COLUMNS))
    if unknown:
        known = ", ".join(_COLUMNS)
        raise LocatedProblem(line, f"has an unknown column {unknown[0]!r}; known are {known}")
    scenario = row.get("scenario_id")
    if not isinstance(scenario, str) or not scenario:
        raise LocatedProblem(line, "names no scenario_id")
    label = row["label"]
    passed = _WORDS.get(str(label).strip().lower())
    if passed is None:
        raise LocatedProblem(line, f"label {label!r} is neither pass nor fail")
    return HumanLabel(
        scenario,
        passed,
        line,
        _parse_iteration(line, row.get("iteration")),
        _parse_text(row.get("assertion")),
        _parse_text(row.get("transcript")),
    )


def _parse_iteration(line: int, value: Any) -> int | None:
    if value in ("", None):
        return None
    if not str(value).isdecimal() or int(value) < 1:
        raise LocatedProblem(line, f"iteration {value!r} is no whole number of at least 1")
    return int(value)


def _parse_text(value: Any) -> str | None:
    return str(value) if value not in ("", None) else None
