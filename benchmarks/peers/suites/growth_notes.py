"""A plugin (`-p growth_notes`): writes what the process holds and has used as tests finish.

`notes.json` in the working folder: a list of `[tests finished, resident bytes, seconds of the
wall, seconds of the processor]`; the first is of the end of the collection.
"""

from __future__ import annotations

import json
import resource
from pathlib import Path
from time import perf_counter, process_time

import pytest

POINTS = 20
"""So many are noted in a run, evenly."""


class Notes:
    """The notes of a session."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, float, float]] = []
        self.finished = 0
        self.every = 1

    def note(self) -> None:
        """Note what the process holds now."""
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        resident = pages * resource.getpagesize()
        self.rows.append((self.finished, resident, perf_counter(), process_time()))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.every = max(1, len(session.items) // POINTS)
        self.note()

    def pytest_runtest_logfinish(self) -> None:
        self.finished += 1
        if self.finished % self.every == 0:
            self.note()

    def pytest_unconfigure(self) -> None:
        Path("notes.json").write_text(json.dumps(self.rows), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Notes())
