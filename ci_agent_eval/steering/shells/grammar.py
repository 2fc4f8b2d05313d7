"""The door to tree-sitter: text in, the root of its syntax tree out.

The scanner (tree-sitter-bash 0.25) passes characters to C's `isdigit`, which reads a table of
256 entries: larger characters read out of bounds, and some crash the process. So each byte of a
non-ASCII character is shown to it as two letters below 256.
"""

from __future__ import annotations

import re
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


_HEX = "0123456789abcdef"
_LETTERS = "".join(chr(0xC0 + digit) for digit in range(16))
"""`À` and the next characters are letters below 256."""
_TO_LETTERS, _TO_HEX = str.maketrans(_HEX, _LETTERS), str.maketrans(_LETTERS, _HEX)
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_ENCODED = re.compile(rf"(?:[{_LETTERS}]{{2}})+")


def encode_for_grammar(text: str) -> bytes:
    """Return UTF-8 with two letters for each byte of a non-ASCII character."""

    def encode(match: re.Match[str]) -> str:
        return match[0].encode("utf-8", "replace").hex().translate(_TO_LETTERS)

    return _NON_ASCII.sub(encode, text).encode()


def decode_from_grammar(source: bytes) -> str:
    """Return the original text of a part of encoded bytes."""

    def decode(match: re.Match[str]) -> str:
        return bytes.fromhex(match[0].translate(_TO_HEX)).decode("utf-8", "replace")

    return _ENCODED.sub(decode, source.decode("utf-8", "replace"))
