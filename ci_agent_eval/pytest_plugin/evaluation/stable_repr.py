"""Texts of values in the same bytes, whatever the hash seed of the process: sets in one order."""

from __future__ import annotations

import ast
import re
import warnings

_SET = re.compile(r"\{[^{}]{1,2000}\}")
"""What may be the text of a set that holds no other."""


def sort_sets(text: str) -> str:
    """Return the text of values with the items of each set of literals in order."""
    return _SET.sub(_sort_set, text)


def _sort_set(found: re.Match[str]) -> str:
    if "..." in found[0]:
        return found[0]  # cut, or with an Ellipsis: not what it was
    try:
        with warnings.catch_warnings():
            # The text may be anybody's; what Python thinks of its style is nobody's business.
            warnings.simplefilter("ignore")
            value = ast.literal_eval(found[0])
    except Exception:  # noqa: BLE001 - what is no literal stays as it is
        return found[0]
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set) else found[0]
