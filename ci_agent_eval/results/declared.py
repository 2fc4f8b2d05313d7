"""What a suite declares of itself, held against the cases found in it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Counts(NamedTuple):
    """Cases by their outcome, and the result elements found in them.

    A case with a failure and an error is one errored case; some producers declare it
    under both, so either count may match a declared one.
    """

    passed: int = 0
    failed: int = 0
    error: int = 0
    skipped: int = 0
    failure_elements: int = 0
    error_elements: int = 0
    skipped_elements: int = 0
    of_suites: int = 0
    """Errored cases that stand for a suite's own result; a suite need not declare them."""

    @property
    def cases(self) -> int:
        """All cases."""
        return self.passed + self.failed + self.error + self.skipped

    def __sub__(self, other: Counts) -> Counts:
        return Counts(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class Difference(NamedTuple):
    """One suite whose declared totals are not those of its cases."""

    loses: bool
    """It declares more cases or failures than are there: something did not report."""
    text: str


def difference(attributes: Mapping[str, str], inside: Counts, direct: Counts) -> Difference | None:
    """Compare a suite's totals with its cases, with or without those of its inner suites.

    Producers differ on whether a suite's totals include its inner suites.
    """
    declared = {name: _total(attributes, name) for name in ("tests", "failures", "errors")}
    declared["skipped"] = _total(attributes, "skipped", "skips", "skip")
    disabled = _total(attributes, "disabled") or 0
    wrong = [
        name
        for name, total in declared.items()
        if total is not None and not _matches(name, total, disabled, (inside, direct))
    ]
    if not wrong:
        return None
    shown = _shown(inside)
    pairs = ", ".join(f"{name} {declared[name]} (found {shown[name]})" for name in wrong)
    name = attributes.get("name", "")[:80]
    return Difference(_loses(declared, inside), f"suite {name!r} declares {pairs}")


def _matches(name: str, total: int, disabled: int, candidates: tuple[Counts, ...]) -> bool:
    return any(total in _acceptable(name, counts, disabled) for counts in candidates)


def _acceptable(name: str, counts: Counts, disabled: int) -> tuple[int, ...]:
    """Return the totals that a producer may rightly declare for these counts."""
    if name == "tests":
        return (counts.cases, counts.cases - counts.of_suites)
    if name == "failures":
        return (counts.failed, counts.failure_elements, counts.failed + counts.of_suites)
    if name == "errors":
        return (counts.error, counts.error_elements, counts.error - counts.of_suites)
    return (counts.skipped, counts.skipped_elements, counts.skipped - disabled)


def _loses(declared: Mapping[str, int | None], inside: Counts) -> bool:
    """Whether cases, failures or errors were declared that are nowhere to be found."""
    bad_declared = (declared["failures"] or 0) + (declared["errors"] or 0)
    bad_found = max(inside.failed + inside.error, inside.failure_elements + inside.error_elements)
    return (declared["tests"] or 0) > inside.cases or bad_declared > bad_found


def _shown(counts: Counts) -> dict[str, int]:
    return {
        "tests": counts.cases,
        "failures": counts.failed,
        "errors": counts.error,
        "skipped": counts.skipped,
    }


def _total(attributes: Mapping[str, str], *names: str) -> int | None:
    """Return the first of the attributes that is a plain number; None for none."""
    for name in names:
        text = attributes.get(name, "").strip()
        if text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
    return None
