"""The last full run that passed, with a hash of the files it passed on.

The pytest plugin writes it to pytest's cache in a project that uses steering; the hook reads it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ci_agent_eval.contract.wording import pluralize

CACHE_KEY = "agent-eval/passed-run"
CACHE_FILE = f".pytest_cache/v/{CACHE_KEY}"

MAX_AGE_S = 86_400.0
"""Seconds after which a result is not offered: installed packages may have changed."""

_MAX_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class PassedRun:
    """A full run that passed."""

    tree: str
    """Hash of all files, see `GitWorkingTree.compute_digest`."""
    selection: tuple[str, ...]
    """`RunIntent.selection` of the run."""
    passed: int
    """Number of passed tests."""
    seconds: float
    ended: float
    """Unix time in seconds."""

    def to_json(self) -> dict[str, object]:
        """Return the record's fields for pytest's cache."""
        return asdict(self)

    def describe(self, selection: Sequence[str], tree: str, now: float) -> str | None:
        """Return a sentence if the same tests passed on the same files; None otherwise."""
        age = now - self.ended
        if (tuple(selection), tree) != (self.selection, self.tree) or not 0 <= age <= MAX_AGE_S:
            return None
        minutes = int(age // 60)
        when = f"{pluralize(minutes, 'minute')} ago" if minutes else "less than a minute ago"
        tests = pluralize(self.passed, "test")
        return f"The same run passed {when} on the same files ({tests} in {self.seconds:.1f} s)."


def load_passed_run(folder: Path) -> PassedRun | None:
    """Return the record of a project's folder; None if there is none that is valid."""
    try:
        with (folder / CACHE_FILE).open("rb") as file:
            fields = json.loads(file.read(_MAX_BYTES))
        return PassedRun(
            tree=str(fields["tree"]),
            selection=tuple(map(str, fields["selection"])),
            passed=int(fields["passed"]),
            seconds=float(fields["seconds"]),
            ended=float(fields["ended"]),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
