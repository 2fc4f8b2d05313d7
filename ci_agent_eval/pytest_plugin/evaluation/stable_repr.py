"""Texts of values that do not depend on the process's hash seed: sets are sorted."""

from __future__ import annotations

import ast
import re
import warnings

_SET = re.compile(r"\{[^{}]{1,2000}\}")
"""Matches the possible text of a set without nested sets."""


def sort_sets(text: str) -> str:
    """Return the text of values with the items of each literal set sorted."""
    return _SET.sub(_sort_set, text)


def _sort_set(found: re.Match[str]) -> str:
    if "..." in found[0]:
        return found[0]  # truncated, or with an Ellipsis: not the original value
    try:
        with warnings.catch_warnings():
            # Ignore Python's warnings about the style of foreign text.
            warnings.simplefilter("ignore")
            value = ast.literal_eval(found[0])
    except Exception:  # noqa: BLE001 - other text is left unchanged
        return found[0]
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set) else found[0]
