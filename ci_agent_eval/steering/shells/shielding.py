"""Text as the bash grammar may see it: no character that its scanner cannot look up.

The scanner (tree-sitter-bash 0.25) hands characters to C's `isdigit`, which reads a table of
256 entries: a character beyond it reads memory that is not the table's, and some end the process.
"""

from __future__ import annotations

import re

_FIRST = 0xC0
"""`À`: it and the fifteen after it are letters, and in the table."""

_OTHERS = re.compile(r"[^\x00-\x7f]+")
_SHIELDED = re.compile(r"(?:[\u00c0-\u00cf]{2})+")


def shielded(text: str) -> bytes:
    """Return UTF-8 in which each byte of a character beyond ASCII is two letters."""
    return _OTHERS.sub(lambda found: _letters(found[0]), text).encode()


def unshielded(source: bytes) -> str:
    """Return the text that a part of shielded bytes stands for."""
    return _SHIELDED.sub(lambda found: _characters(found[0]), source.decode("utf-8", "replace"))


def _letters(text: str) -> str:
    return "".join(
        chr(_FIRST + half) for byte in text.encode("utf-8", "replace") for half in divmod(byte, 16)
    )


def _characters(letters: str) -> str:
    halves = [ord(letter) - _FIRST for letter in letters]
    pairs = zip(halves[::2], halves[1::2], strict=True)
    return bytes(16 * high + low for high, low in pairs).decode("utf-8", "replace")
