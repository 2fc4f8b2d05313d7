"""Convert untyped JSON values; a value of another type counts as missing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.contract.wording import one_line

MAX_AMOUNT = 1e15
"""The largest amount in the contract."""

_MAX_NAME = 200


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[Any]:
    """Return a JSON list, or an empty one."""
    return value if isinstance(value, list) else ()


def as_objects(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the items of a list as objects; any other item becomes an empty object."""
    return (as_mapping(item) for item in as_list(value))


def as_text(value: object) -> str | None:
    """Return a string that is not blank, or None."""
    return value if isinstance(value, str) and value.strip() else None


def as_number(value: object) -> float | None:
    """Return a finite number, or None; booleans are no numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -MAX_AMOUNT <= value <= MAX_AMOUNT and math.isfinite(value) else None


def as_amount(value: object) -> float | None:
    """Return a number that is not negative, or None."""
    found = as_number(value)
    return found if found is not None and found >= 0 else None


def as_count(value: object) -> int | None:
    """Return an integer that is not negative, or None."""
    found = as_amount(value)
    return int(found) if found is not None and found == int(found) else None


def as_share(value: object) -> float | None:
    """Return a number from 0 to 1, or None."""
    found = as_amount(value)
    return found if found is not None and found <= 1 else None


def as_milliseconds(seconds: object) -> float | None:
    """Convert seconds to milliseconds; None if they are no amount."""
    found = as_amount(seconds)
    return None if found is None else as_amount(found * 1000)


def build_usage(prompt: object, completion: object, cached: object = None) -> dict[str, int] | None:
    """Build the usage of one turn; None unless both input and output tokens are known."""
    tokens_in, tokens_out = as_count(prompt), as_count(completion)
    if tokens_in is None or tokens_out is None:
        return None
    return {
        "input": tokens_in,
        "output": tokens_out,
        "cached": min(as_count(cached) or 0, tokens_in),
    }


def format_content(value: object) -> str:
    """Return a string unchanged, None as an empty string, and anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False)


def as_name(value: object) -> str:
    """Format a value on one line, cut to the length of a name."""
    line = one_line(format_content(value))
    return line if len(line) <= _MAX_NAME else f"{line[:_MAX_NAME]}…"
