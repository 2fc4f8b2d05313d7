"""The rows of the table in docs/agents.md: one file for each framework, written by its tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.frameworks.reasons import REASONS

FOLDER = Path(__file__).parent / "rows"
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
        path = FOLDER / f"{self.framework}.json"
        if set(self.cells) != set(COLUMNS):
            return  # not all tests ran, or passed
        cells = {column: self.cells[column] for column in COLUMNS}
        text = json.dumps({"version": self.version, "cells": cells}, indent=2) + "\n"
        if update:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.read_text() == text, "UPDATE_GOLDEN=1 make frameworks writes the rows anew"
