"""The door to tree-sitter: text in, the root of its syntax tree out."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from tree_sitter import Language, Node, Parser


@cache
def _load_language(module: str) -> Language:
    return Language(import_module(module).language())


_MAX_BYTES = 10_000
"""Bytes; repairing errors takes time by the square of the length, here up to a quarter second."""
_MAX_BYTES_WITH_ERRORS = 4_000
"""Bytes of a source in which errors that the parser notices early are repaired."""


def parse_tree(source: bytes, module: str) -> Node | None:
    """Parse source with the grammar of that module; None if that would take long.

    A parser holds state and is made anew each time: that costs microseconds, and threads share
    nothing.
    """
    parser = Parser(_load_language(module))
    if len(source) <= _MAX_BYTES_WITH_ERRORS:
        return parser.parse(source).root_node
    if len(source) > _MAX_BYTES:
        return None
    try:
        tree = parser.parse(
            lambda offset, _: source[offset : offset + 4096],
            progress_callback=lambda _, has_error: has_error,
        )
    except ValueError:  # how a cancelled parse is reported
        return None
    return tree.root_node
