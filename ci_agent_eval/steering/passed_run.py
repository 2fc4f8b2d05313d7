"""The last full run that passed, with a hash of the files it passed on.

The pytest plugin writes it to pytest's cache in a project that uses steering; the hook reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from ci_agent_eval.contract.wording import pluralize

CACHE_KEY = "agent-eval/passed-run"
CACHE_FILE = f".pytest_cache/v/{CACHE_KEY}"

MAX_AGE_S = 86_400.0
"""Seconds after which a result is not offered: installed packages may have changed."""

_MAX_BYTES = 10_000


_COMPARED_VARIABLES = frozenset({"CI", "DJANGO_SETTINGS_MODULE", "TZ"})
"""Environment variables that often decide whether tests pass, besides those of Python."""


@dataclass(frozen=True, slots=True)
class RunConditions:
    """The tests of a run, and everything compared that may change their outcome."""

    tree: str
    """Hash of all files, see `GitWorkingTree.compute_digest`."""
    environment: str
    """Hash of variables, see `compute_environment_digest`."""
    selection: tuple[str, ...]
    """`RunIntent.selection` of the run."""


@dataclass(frozen=True, slots=True)
class PassedRun:
    """A full run that passed."""

    conditions: RunConditions
    programs: str
    """Folder of the Python that ran, absolute and without symbolic links."""
    passed: int
    """Number of passed tests."""
    seconds: float
    ended: float
    """Unix time in seconds."""

    def to_json(self) -> dict[str, object]:
        """Return the record's fields for pytest's cache."""
        return asdict(self)

    def describe(self, conditions: RunConditions, now: float) -> str | None:
        """Return a sentence if the same tests passed under the same conditions; None otherwise."""
        age = now - self.ended
        if conditions != self.conditions or not 0 <= age <= MAX_AGE_S:
            return None
        minutes = int(age // 60)
        when = f"{pluralize(minutes, 'minute')} ago" if minutes else "less than a minute ago"
        tests = pluralize(self.passed, "test")
        return f"The same run passed {when} on the same files ({tests} in {self.seconds:.1f} s)."


def compute_environment_digest(environ: Mapping[str, str]) -> str:
    """Return a hash of Python's variables (`PYTHON*`) and of `CI`, `DJANGO_SETTINGS_MODULE`, `TZ`.

    Other variables differ between the agent's commands and its hook without any effect.
    """
    names = (name for name in environ if name.startswith("PYTHON") or name in _COMPARED_VARIABLES)
    listing = "\0".join(f"{name}={environ[name]}" for name in sorted(names))
    return sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()


def load_passed_run(folder: Path) -> PassedRun | None:
    """Return the record of a project's folder; None if there is none that is valid."""
    try:
        with (folder / CACHE_FILE).open("rb") as file:
            fields = json.loads(file.read(_MAX_BYTES))
        conditions = fields["conditions"]
        return PassedRun(
            RunConditions(
                tree=str(conditions["tree"]),
                environment=str(conditions["environment"]),
                selection=tuple(map(str, conditions["selection"])),
            ),
            programs=str(fields["programs"]),
            passed=int(fields["passed"]),
            seconds=float(fields["seconds"]),
            ended=float(fields["ended"]),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
