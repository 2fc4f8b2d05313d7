"""`make bench`: measure, print each row, and write the rows of README.md anew.

    python -m benchmarks [start] [junit] [overhead] [alarms] [steering]

A row that is not measured keeps its figure and its date.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from pkgutil import resolve_name

from benchmarks.processes import Row, describe_machine

PAGE = Path(__file__).with_name("README.md")
GROUPS = {
    "start": "benchmarks.reports:measure_start",
    "junit": "benchmarks.reports:measure_junit",
    "overhead": "benchmarks.overhead:measure",
    "alarms": "benchmarks.alarms:measure",
    "steering": "benchmarks.steering:measure",
}
"""Imported when they run: a process inherits the peak of memory of the one that starts it."""


def replace_row(page: str, row: Row) -> str:
    """Return the page with the row in place of the one with the same name; it must have one."""
    line = f"| {row.name} | {row.figure} | {row.remark} | {datetime.now(UTC):%Y-%m-%d} |"
    lines = page.splitlines()
    lines[[text.startswith(f"| {row.name} |") for text in lines].index(True)] = line
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure the named groups, by default all."""
    names = sys.argv[1:] or list(GROUPS)
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        sys.exit(f"{unknown[0]!r} is not a group: choose from {', '.join(GROUPS)}")
    machine = f"Last run: {datetime.now(UTC):%Y-%m-%d} on {describe_machine()}."
    print(machine)
    lines = PAGE.read_text().splitlines()
    lines = [machine if line.startswith("Last run: ") else line for line in lines]
    PAGE.write_text("\n".join([*lines, ""]))
    for name in names:
        for row in resolve_name(GROUPS[name])():
            print(f"{row.name}: {row.figure} {row.remark}", flush=True)
            PAGE.write_text(replace_row(PAGE.read_text(), row))


if __name__ == "__main__":
    main()
