"""The choice of the scenarios that a change can have affected, by their declared files. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

ALWAYS = (
    *("*.toml", "*.ini", "*.cfg", ".git*", "*/.git*"),
    *("*.lock", "*.lockb", "*-lock.json", "*-lock.yaml", "npm-shrinkwrap.json", "go.sum"),
    *("requirements*", "*/requirements*", "*constraints*.txt"),
)
"""Settings, workflows and lock files: with a change of one of them, everything runs."""


@dataclass(frozen=True, slots=True)
class DeclaredScenario:
    """A collected scenario with the files that can change its result."""

    scenario_id: str
    own: frozenset[str]
    """Its test file, scenario file, cassettes and conftests."""
    declared: frozenset[str] | None
    """The patterns of `depends_on`; None: it declares nothing, and always runs."""

    @property
    def patterns(self) -> frozenset[str]:
        """All of them."""
        return self.own | (self.declared or frozenset())


@dataclass(frozen=True, slots=True)
class AffectedSelection:
    """The scenarios that a change left out, or why it left out none."""

    left_out: tuple[str, ...] = ()
    """Their ids, sorted."""
    full_run: str | None = None
    """Why everything runs; None: the declarations decided."""


def select_affected(
    scenarios: Sequence[DeclaredScenario], changed: Iterable[str], ignore: Sequence[str]
) -> AffectedSelection:
    """Return the scenarios none of whose files changed; none if a change may concern everything."""
    changed = sorted(changed)
    patterns = frozenset[str]().union(*(one.patterns for one in scenarios))
    for path in changed:
        if _matches(path, ALWAYS):
            return AffectedSelection(full_run=f"{path} changed, a settings or lock file")
        if not _matches(path, patterns) and not _matches(path, ignore):
            reason = f"{path} changed, which no depends_on and no ignore matches"
            return AffectedSelection(full_run=reason)
    found = (
        one.scenario_id
        for one in scenarios
        if one.declared is not None and not any(_matches(path, one.patterns) for path in changed)
    )
    return AffectedSelection(tuple(sorted(found)))


def describe_selection(found: AffectedSelection) -> str:
    """Return a note about what runs; empty if all scenarios are affected."""
    if found.full_run is not None:
        return f"--affected: everything runs: {found.full_run}"
    number = len(found.left_out)
    return f"--affected: {number} left out, not affected (declared)" if number else ""


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(_matches_pattern(path, pattern.rstrip("/")) for pattern in patterns)


def _matches_pattern(path: str, pattern: str) -> bool:
    """Return whether a pattern is the path, a folder above it, or matches one of the two."""
    forms = (pattern, pattern.replace("**/", ""))
    return path == pattern or any(
        fnmatchcase(path, form) or fnmatchcase(path, f"{form}/*") for form in forms
    )
