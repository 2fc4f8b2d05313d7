"""The base class of checks, and validation of their options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.contract.episode import Assertion, Severity
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.errors import InputError

Texts = str | Sequence[str]
"""Texts; a single text stands for a list of one."""

Patterns = str | re.Pattern[str] | Sequence[str | re.Pattern[str]]
"""Regular expressions, compiled or not; a single one stands for a list of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseCheck:
    """Options that all checks share."""

    name: str | None = None
    """Name of the assertion in reports; unset: a sentence that describes the check."""
    severity: Severity = "error"
    """A warning is reported and fails nothing."""

    def _build_assertion(
        self, statement: str, passed: bool, reason: str, *, score: float | None = None
    ) -> Assertion:
        """Build an assertion; a failed one may have a score above 0 (partial credit)."""
        return Assertion(
            name=clean_text(self.name or statement),
            passed=passed,
            score=score,
            reason=clean_text(reason),
            severity=self.severity,
        )


def compute_share(part: int, whole: int) -> float:
    """Return `part / whole`, 0 to 1; 1 if `whole` is 0."""
    return part / whole if whole else 1.0


def normalize_texts(owner: str, field: str, value: object) -> tuple[str, ...]:
    """Return one or several texts as a tuple. Raises InputError for anything else."""
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, Iterable) or isinstance(items, bytes | Mapping):
        raise InputError(f"{owner}.{field}: must be a text or a list of texts, got {value!r}")
    found = tuple(items)
    if not all(isinstance(item, str) and item for item in found):
        raise InputError(f"{owner}.{field}: must be texts that are not empty, got {value!r}")
    return found


def compile_patterns(owner: str, field: str, value: Any) -> tuple[re.Pattern[str], ...]:
    """Compile one or several regular expressions. Raises InputError, naming the invalid one."""
    items = (value,) if isinstance(value, str | re.Pattern) else tuple(value)
    return tuple(compile_pattern(owner, field, item) for item in items)


def compile_pattern(owner: str, field: str, value: Any) -> re.Pattern[str]:
    """Compile a regular expression. Raises InputError if it is invalid."""
    if not isinstance(value, str) and not isinstance(getattr(value, "pattern", None), str):
        raise InputError(f"{owner}.{field}: {value!r} is no regular expression for texts")
    try:
        return re.compile(value)
    except re.error as error:
        raise InputError(f"{owner}.{field}: {value!r} is no regular expression: {error}") from error


def require_whole_number(owner: str, field: str, value: object, *, minimum: int = 0) -> None:
    """Raise InputError unless the value is a whole number, `minimum` or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise InputError(f"{owner}.{field}: must be a whole number from {minimum}, got {value!r}")


def require_number_up_to(
    owner: str, field: str, value: object, *, maximum: float = float("inf")
) -> None:
    """Raise InputError unless the value is a number from 0 to `maximum`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= maximum:
        bound = "" if maximum == float("inf") else f" to {maximum:g}"
        raise InputError(f"{owner}.{field}: must be a number from 0{bound}, got {value!r}")


def require_threshold(owner: str, value: object) -> None:
    """Raise InputError unless the value is a number above 0 and up to 1."""
    require_number_up_to(owner, "threshold", value, maximum=1)
    if value == 0:
        raise InputError(f"{owner}.threshold: at 0 everything passes; give a number above it")


def require_any(owner: str, *given: object) -> None:
    """Raise InputError if all options are empty: such a check would always pass."""
    if not any(given):
        raise InputError(f"{owner}: it is given nothing to check; name at least one")


def set_fields(check: Any, **values: object) -> None:
    """Set fields of a frozen check in its `__post_init__`."""
    for name, value in values.items():
        object.__setattr__(check, name, value)
