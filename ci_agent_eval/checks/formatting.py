"""Formatting of values for the reasons of assertions: short, on one line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.contract.wording import shorten_text

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
