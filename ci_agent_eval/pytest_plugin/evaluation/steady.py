"""Reasons in the same bytes, whatever the hash seed of the process: sets in one order.

And without pytest's advice on its own options, which whoever reads a report cannot follow.
"""

from __future__ import annotations

import ast
import re
import warnings

_SET = re.compile(r"\{[^{}]{1,2000}\}")
"""What may be the text of a set that holds no other."""

_ADVICE = re.compile(
    r"(?:\n[ \t]*)*\n[ \t]*(?:Use -v to get more diff|\.\.\.Full output truncated[^\n]*)(?=\n|$)"
)


def steady(text: str) -> str:
    """Return a reason with the items of each set in the order of their texts."""
    return with_sorted_sets(_ADVICE.sub("", text))


def with_sorted_sets(text: str) -> str:
    """Return the text of values with the items of each set of literals in order."""
    return _SET.sub(_sorted, text)


def _sorted(found: re.Match[str]) -> str:
    try:
        with warnings.catch_warnings():
            # The text may be anybody's; what Python thinks of its style is nobody's business.
            warnings.simplefilter("ignore")
            value = ast.literal_eval(found[0])
    except Exception:  # noqa: BLE001 - what is no literal stays as it is
        return found[0]
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set) else found[0]
