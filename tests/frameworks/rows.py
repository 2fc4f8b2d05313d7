"""The rows of the table in docs/agents.md: `rows.json`, written by the tests of each framework."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.frameworks.reasons import REASONS

FILE = Path(__file__).parent / "rows.json"
YES = "yes"


COLUMNS: Mapping[str, str] = {
    "glue": "lines of glue",
    "requests": "requests seen = served",
    "turns": "turns",
    "tool_calls": "tool calls with arguments",
    "tool_results": "their results",
    "tool_errors": "tool errors",
    "handoffs": "handoffs, nested agents",
    "tokens": "tokens",
    "cost": "cost",
    "finish": "finish reason",
    "typed": "typed output",
    "bad_end": "bad end kept",
    "budget": "budget stops it",
    "replay": "record → replay equal",
    "suite_replay": "the same at 20 at once and with `-n 2`",
    "concurrent": "20 episodes at once apart",
    "streaming": "streaming",
    "conversation": "conversation goes on",
}


@dataclass
class Row:
    """The cells of a framework, measured by its tests."""

    framework: str
    version: str
    cells: dict[str, str] = field(default_factory=dict)

    def record(self, column: str, *, is_reached: bool, details: object = "") -> None:
        """Record a cell: reached, or the known reason why not. Raises AssertionError."""
        assert column in COLUMNS
        reason = REASONS.get((self.framework, column))
        if reason is None:
            assert is_reached, f"{column}: {details}"
            self.cells[column] = YES
        else:
            assert not is_reached, f"{column} is reached; delete its reason: {reason}"
            self.cells[column] = reason

    def compare_or_write(self, *, update: bool) -> None:
        """Compare the row with the recorded one, or record it. Raises AssertionError."""
        if set(self.cells) != set(COLUMNS):
            return  # not all tests ran, or passed
        cells = {column: self.cells[column] for column in COLUMNS}
        recorded = load_rows()
        rows = recorded | {self.framework: {"version": self.version, "cells": cells}}
        if update:
            FILE.write_text(json.dumps(dict(sorted(rows.items())), indent=2) + "\n")
        assert load_rows() == rows, "UPDATE_GOLDEN=1 make frameworks writes the rows anew"


def load_rows() -> dict[str, Any]:
    """Return the recorded rows by framework."""
    rows: dict[str, Any] = json.loads(FILE.read_text())
    return rows
