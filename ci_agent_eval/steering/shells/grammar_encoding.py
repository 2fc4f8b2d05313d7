"""Text as the bash grammar may see it: no character that its scanner cannot look up.

The scanner (tree-sitter-bash 0.25) hands characters to C's `isdigit`, which reads a table of
256 entries: a character beyond it reads memory that is not the table's, and some end the process.
"""

from __future__ import annotations

import re

_FIRST_LETTER = 0xC0
"""`À`: it and the fifteen after it are letters, and in the table."""

_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_ENCODED = re.compile(r"(?:[\u00c0-\u00cf]{2})+")


def encode_for_grammar(text: str) -> bytes:
    """Return UTF-8 in which each byte of a character beyond ASCII is two letters."""
    return _NON_ASCII.sub(lambda found: _encode_letters(found[0]), text).encode()


def decode_from_grammar(source: bytes) -> str:
    """Return the text that a part of shielded bytes stands for."""
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
