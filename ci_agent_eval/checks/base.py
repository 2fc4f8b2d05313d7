"""What every check has: a name, a severity, and assertions that always carry a reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.checks.formatting import format_list
from ci_agent_eval.contract.episode import Assertion, Severity
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.errors import InputError

Texts = str | Sequence[str]
"""Some texts; a bare one stands for a list of it."""

Patterns = str | re.Pattern[str] | Sequence[str | re.Pattern[str]]
"""Regular expressions, compiled or not; a bare one stands for a list of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseCheck:
    """The options all checks share."""

    name: str | None = None
    """What reports call the assertion; unset: a sentence that says what was checked."""
    severity: Severity = "error"
    """A warning is shown and fails nothing."""

    def _assertion(
        self, says: str, passed: bool, reason: str, *, score: float | None = None
    ) -> Assertion:
        """Return the assertion `says`; a score below 1 of a failed one is partial credit."""
        return Assertion(
            name=clean_text(self.name or says),
            passed=passed,
            score=score,
            reason=clean_text(reason),
            severity=self.severity,
        )


def compute_share(part: int, whole: int) -> float:
    """Return `part` of `whole` as 0 to 1; of nothing, all."""
    return part / whole if whole else 1.0


def normalize_texts(owner: str, field: str, value: object) -> tuple[str, ...]:
    """Return texts as a tuple. Raises InputError for anything else, and for empty texts."""
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, Iterable) or isinstance(items, bytes | Mapping):
        raise InputError(f"{owner}.{field}: must be a text or a list of texts, got {value!r}")
    found = tuple(items)
    if not all(isinstance(item, str) and item for item in found):
        raise InputError(f"{owner}.{field}: must be texts that are not empty, got {value!r}")
    return found


def compile_patterns(owner: str, field: str, value: Any) -> tuple[re.Pattern[str], ...]:
    """Return regular expressions compiled. Raises InputError, naming the one that is none."""
    items = (value,) if isinstance(value, str | re.Pattern) else tuple(value)
    return tuple(compile_pattern(owner, field, item) for item in items)


def compile_pattern(owner: str, field: str, value: Any) -> re.Pattern[str]:
    """Return a regular expression compiled. Raises InputError."""
    if not isinstance(value, str) and not isinstance(getattr(value, "pattern", None), str):
        raise InputError(f"{owner}.{field}: {value!r} is no regular expression for texts")
    try:
        return re.compile(value)
    except re.error as error:
        raise InputError(f"{owner}.{field}: {value!r} is no regular expression: {error}") from error


def require_whole_number(owner: str, field: str, value: object, *, least: int = 0) -> None:
    """Refuse anything but a whole number of at least so many."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{owner}.{field}: must be a whole number from {least}, got {value!r}")


def require_number_up_to(
    owner: str, field: str, value: object, *, most: float = float("inf")
) -> None:
    """Refuse anything but a number from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        upto = "" if most == float("inf") else f" to {most:g}"
        raise InputError(f"{owner}.{field}: must be a number from 0{upto}, got {value!r}")


def require_threshold(owner: str, value: object) -> None:
    """Refuse anything but a number above 0, up to 1."""
    require_number_up_to(owner, "threshold", value, most=1)
    if value == 0:
        raise InputError(f"{owner}.threshold: at 0 everything passes; give a number above it")


def require_known(owner: str, field: str, value: object, known: Sequence[str]) -> None:
    """Refuse a word that is not known, naming those that are."""
    if value not in known:
        raise InputError(f"{owner}.{field}: must be one of {format_list(known)}; got {value!r}")


def require_any(owner: str, *given: object) -> None:
    """Refuse a check that has nothing to check: it would always pass."""
    if not any(given):
        raise InputError(f"{owner}: it is given nothing to check; name at least one")


def set_fields(check: Any, **values: object) -> None:
    """Set fields of a frozen check while it is made."""
    for name, value in values.items():
        object.__setattr__(check, name, value)
