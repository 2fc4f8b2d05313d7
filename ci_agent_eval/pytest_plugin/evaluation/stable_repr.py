"""Texts of values that do not depend on the process's hash seed: sets are sorted."""

from __future__ import annotations

import ast
import re
import warnings

_SET = re.compile(r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\{[^{}]{1,2000}\}""")
"""Matches a quoted text, which stays as it is, or the possible text of a set without inner sets."""

_TEXT_COMPARED = re.compile(r"(?:assert )?(?:not )?['\"]")
"""Matches the first line of an explanation whose next lines show parts of a text."""

_ORIGIN = re.compile(r"\s*\+?\s*(?:where|and) ")
"""Matches a line of an explanation that shows where a value is from."""


_MAY_WARN = re.compile(r"\\|\d[A-Za-z]")
"""Matches a backslash, and a number before a letter, whose style Python may warn about."""


def sort_sets(text: str) -> str:
    """Return the text of values with the items of each literal set sorted."""
    return _SET.sub(_sort_set, text)


def sort_explained_sets(explanation: str) -> str:
    """Return the explanation of a passed assert with sorted sets; text of the agent stays."""
    first, *others = explanation.split("\n")
    is_text = _TEXT_COMPARED.match(first) is not None
    kept = [line if is_text and not _ORIGIN.match(line) else sort_sets(line) for line in others]
    return "\n".join([sort_sets(first), *kept])


def sort_failed_sets(error: str) -> str:
    """Return the text of a failed assert with sorted sets, but its own message as it is."""
    message, start, explanation = f"\n{error}".partition("\nassert ")
    if not start:
        return error
    return f"{message}\n{sort_explained_sets(f'assert {explanation}')}"[1:]


def _sort_set(found: re.Match[str]) -> str:
    if "..." in found[0] or found[0][0] != "{":
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
