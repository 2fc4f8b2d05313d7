"""The door to tree-sitter: text in, the root of its syntax tree out."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from tree_sitter import Language, Node, Parser


@cache
def _load_language(module: str) -> Language:
    return Language(import_module(module).language())


_MAX_BYTES = 10_000
"""Maximum length of a source; error recovery takes quadratic time, here up to 0.25 s."""
_MAX_BYTES_WITH_ERRORS = 4_000
"""Maximum length of a source with syntax errors."""


def is_too_long(text: str) -> bool:
    """Return whether a text is too long to be parsed in any case."""
    return len(text) > _MAX_BYTES


def parse_tree(source: bytes, module: str) -> Node | None:
    """Parse source with a module's grammar; None if that would take too long.

    Creates a parser for each call, which costs microseconds: parsers have state that threads
    must not share.
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
    except ValueError:  # tree-sitter's error for a cancelled parse
        return None
    return tree.root_node
