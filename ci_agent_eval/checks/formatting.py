"""Values in the sentences of reasons: on one line, and short."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.contract.wording import shorten_text

MAX_LENGTH = 120
"""Characters of one value in a reason; the whole is in the episode."""
MAX_ITEMS = 5
"""Values of one list in a reason; the rest is counted."""


def format_value(value: Any) -> str:
    """Return a value as JSON on one line, cut with a mark where it is long."""
    return truncate_text(json.dumps(to_jsonable(value), ensure_ascii=False))


def truncate_text(text: str, length: int = MAX_LENGTH) -> str:
    """Return a text on one line, or its beginning and a mark where it was cut."""
    return shorten_text(text, length)


def format_list(items: Iterable[object]) -> str:
    """Return the first items with commas between, and how many more there are."""
    every = [str(item) for item in items]
    more = f" and {len(every) - MAX_ITEMS} more" if len(every) > MAX_ITEMS else ""
    return ", ".join(every[:MAX_ITEMS]) + more


def format_call(call: ToolCall) -> str:
    """Return a call as one would write it: `refund(order_id=1001)`."""
    given = call.arguments
    if not isinstance(given, dict):
        return truncate_text(f"{call.name}({'' if given is None else json.dumps(given)})")
    inside = ", ".join(f"{name}={json.dumps(value)}" for name, value in given.items())
    return truncate_text(f"{call.name}({inside})")


def format_times(count: int) -> str:
    """Return how often: `once`, `twice`, `3 times`."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
