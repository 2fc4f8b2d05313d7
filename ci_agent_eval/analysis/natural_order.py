"""Natural order of names: digits are compared as numbers."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"([0-9]+)")


def build_natural_key(name: str) -> list[tuple[int, str]]:
    """Return the sort key of natural order: `run-9` before `run-10`, of any length."""
    parts = (part.lstrip("0") if at % 2 else part for at, part in enumerate(_DIGITS.split(name)))
    return [(len(part) if at % 2 else -1, part) for at, part in enumerate(parts)]
