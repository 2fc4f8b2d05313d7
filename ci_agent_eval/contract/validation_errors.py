"""One-sentence descriptions of pydantic's validation errors, with the key and its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ci_agent_eval.contract.base import UNKNOWN_KEY

_PLAIN: Mapping[str, str] = {
    "extra_forbidden": "unknown key",
    "missing": "is required",
    "model_type": "must be a table (an object with keys)",
    "dict_type": "must be a table (an object with keys)",
    "tuple_type": "must be a list",
    "finite_number": "must be a finite number",
}
"""Messages for pydantic error types whose own messages describe Python, not the file."""


def describe_validation_error(error: ValueError) -> str:
    """Return the first problem of a validation error: `budgets.tool_calls.limit: … (got -1)`."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = get_plain_message(first)
    suffix = "" if isinstance(first["input"], dict) else f" (got {first['input']!r})"
    sentence = f"{message}{suffix}"
    return f"{where}: {sentence}" if where else sentence


def find_unknown_key(problem: Mapping[str, Any]) -> str | None:
    """Return the key of an unknown-key error; None for other errors."""
    return str(problem["ctx"]["key"]) if problem["type"] == UNKNOWN_KEY else None


def get_plain_message(problem: Mapping[str, Any]) -> str:
    """Return the message of one pydantic error without pydantic's jargon."""
    return _PLAIN.get(problem["type"], str(problem["msg"]).removeprefix("Value error, "))
