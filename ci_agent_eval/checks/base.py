"""The base class of checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ci_agent_eval.contract.episode import Assertion, Severity
from ci_agent_eval.contract.fields import validate_fields
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseCheck:
    """Options that all checks share."""

    name: str | None = None
    """Name of the assertion in reports; unset: a sentence that describes the check."""
    severity: Severity = "error"
    """A warning is reported and fails nothing."""

    def __post_init__(self) -> None:
        validate_fields(self)

    def _build_assertion(
        self,
        statement: str,
        passed: bool,
        reason: str,
        *,
        score: float | None = None,
        threshold: float | None = None,
    ) -> Assertion:
        """Build an assertion; a failed one may have a score above 0 (partial credit)."""
        return Assertion(
            name=clean_text(self.name or statement),
            passed=passed,
            score=score,
            threshold=threshold,
            reason=clean_text(reason),
            severity=self.severity,
        )


def compute_share(part: int, whole: int) -> float:
    """Return `part / whole`, 0 to 1; 1 if `whole` is 0."""
    return part / whole if whole else 1.0


def require_any(owner: str, *given: object) -> None:
    """Raise InputError if all options are empty: such a check would always pass."""
    if not any(given):
        raise InputError(f"{owner}: it is given nothing to check; name at least one")


def set_fields(check: Any, **values: object) -> None:
    """Set fields of a frozen check in its `__post_init__`."""
    for name, value in values.items():
        object.__setattr__(check, name, value)
