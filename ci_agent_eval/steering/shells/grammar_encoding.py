"""Encoding of non-ASCII characters for the bash grammar, which crashes on some of them.

The scanner (tree-sitter-bash 0.25) passes characters to C's `isdigit`, which reads a table of
256 entries: larger characters read out of bounds, and some crash the process.
"""

from __future__ import annotations

import re

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
