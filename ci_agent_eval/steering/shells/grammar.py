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


_FIRST_LETTER = 0xC0
"""`À`: it and the next 15 characters are letters below 256."""

_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_ENCODED = re.compile(r"(?:[\u00c0-\u00cf]{2})+")


def encode_for_grammar(text: str) -> bytes:
    """Return UTF-8 with two letters for each byte of a non-ASCII character."""
    return _NON_ASCII.sub(lambda found: _encode_letters(found[0]), text).encode()


def decode_from_grammar(source: bytes) -> str:
    """Return the original text of a part of encoded bytes."""
    return _ENCODED.sub(lambda found: _decode_letters(found[0]), source.decode("utf-8", "replace"))


def _encode_letters(text: str) -> str:
    return "".join(
        chr(_FIRST_LETTER + half)
        for byte in text.encode("utf-8", "replace")
        for half in divmod(byte, 16)
    )


def _decode_letters(letters: str) -> str:
    halves = [ord(letter) - _FIRST_LETTER for letter in letters]
    pairs = zip(halves[::2], halves[1::2], strict=True)
    return bytes(16 * high + low for high, low in pairs).decode("utf-8", "replace")
