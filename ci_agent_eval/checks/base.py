"""The base class of checks."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ci_agent_eval.contract.episode import Assertion, Episode, Severity
from ci_agent_eval.contract.fields import validate_fields
from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.contract.wording import shorten_text
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


@runtime_checkable
class Check(Protocol):
    """An object that turns an episode into assertions with reasons."""

    def assertions(
        self, episode: Episode
    ) -> tuple[Assertion, ...] | Awaitable[tuple[Assertion, ...]]:
        """Return at least one assertion, each with its reason.

        A check that needs a model returns an awaitable of them. A check that cannot decide
        (a broken judge) raises instead of returning a score of 0: it is no agent failure.
        """


MAX_LENGTH = 120
"""Characters of one value in a reason; the episode has the full value."""
MAX_ITEMS = 5
"""Items of one list in a reason; further items are counted."""


def format_value(value: Any) -> str:
    """Return a value as JSON on one line, truncated with a mark if it is long."""
    return format_text(json.dumps(to_jsonable(value), ensure_ascii=False))


def format_text(text: str, length: int = MAX_LENGTH) -> str:
    """Return a text on one line, truncated with a mark if it is longer than `length`."""
    return shorten_text(text, length)


def format_list(items: Iterable[object]) -> str:
    """Join the first items with commas, and append the number of further items."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - MAX_ITEMS} more" if len(texts) > MAX_ITEMS else ""
    return ", ".join(texts[:MAX_ITEMS]) + more


def format_call(call: ToolCall) -> str:
    """Return a call in Python's notation: `refund(order_id=1001)`."""
    given = call.arguments
    if not isinstance(given, dict):
        return format_text(f"{call.name}({'' if given is None else json.dumps(given)})")
    inside = ", ".join(f"{name}={json.dumps(value)}" for name, value in given.items())
    return format_text(f"{call.name}({inside})")


def format_times(count: int) -> str:
    """Return a count as an adverb: `never`, `once`, `twice`, `3 times`."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
