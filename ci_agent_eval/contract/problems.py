"""pydantic's errors as one sentence that names the key and where it stands."""

from __future__ import annotations

from pydantic import ValidationError


def describe_problem(error: ValueError) -> str:
    """Return the first problem of a validation error: `budgets.tool_calls.limit: … (got -1)`."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    given = "" if isinstance(first["input"], dict) else f" (got {first['input']!r})"
    sentence = f"{message}{given}"
    return f"{where}: {sentence}" if where else sentence
