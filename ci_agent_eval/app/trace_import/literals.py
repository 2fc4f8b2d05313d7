"""JSON values as Python literals, in the style of common formatters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_WIDTH = 88
_INDENT = "    "


def format_literal(value: Any, column: int = 0) -> str:
    """Return the literal of a JSON value, or of pairs in it; `column` is that of its line.

    Unprintable characters are escaped, so that a text can neither end its line nor reorder it.
    """
    flat = _format_flat(value)
    if len(flat) + column <= _WIDTH or not isinstance(value, dict | list | tuple) or not value:
        return flat
    items = "".join(
        f"{' ' * column}{_INDENT}{item},\n" for item in _format_items(value, column + len(_INDENT))
    )
    opening, closing = _BRACKETS[type(value)]
    return f"{opening}\n{items}{' ' * column}{closing}"


_BRACKETS: Mapping[type, tuple[str, str]] = {dict: ("{", "}"), list: ("[", "]"), tuple: ("(", ")")}


def _format_items(value: Any, column: int) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{_format_flat(key)}: {format_literal(item, column)}"
    else:
        yield from (format_literal(item, column) for item in value)


def _format_flat(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_format_flat(k)}: {_format_flat(v)}' for k, v in value.items())}}}"
    if isinstance(value, list | tuple):
        opening, closing = _BRACKETS[type(value)]
        return f"{opening}{', '.join(map(_format_flat, value))}{closing}"
    text = repr(value)
    if isinstance(value, str) and text.startswith("'") and '"' not in text:
        return f'"{text[1:-1]}"'
    return text
