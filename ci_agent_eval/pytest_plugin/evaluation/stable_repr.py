"""Texts of values that do not depend on the process's hash seed: sets are sorted."""

from __future__ import annotations

import ast
import re
import warnings

_SET = re.compile(r"\{[^{}]{1,2000}\}")
"""Matches the possible text of a set without nested sets."""


_MAY_WARN = re.compile(r"\\|\d[A-Za-z]")
"""Matches a backslash, and a number before a letter, whose style Python may warn about."""


def sort_sets(text: str) -> str:
    """Return the text of values with the items of each literal set sorted."""
    return _SET.sub(_sort_set, text)


def _sort_set(found: re.Match[str]) -> str:
    if "..." in found[0]:
        return found[0]  # truncated, or with an Ellipsis: not the original value
    try:
        value = _parse_set(found[0])
    except Exception:  # noqa: BLE001 - other text is left unchanged
        return found[0]
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set) else found[0]


def _parse_set(text: str) -> object:
    """Return the value of a literal without Python's warnings about the style of foreign text.

    Warnings are caught only where one may come: that changes the state of the whole process, and
    other threads run episodes.
    """
    if not _MAY_WARN.search(text):
        return ast.literal_eval(text)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="<unknown>")
        return ast.literal_eval(text)
