"""Private keys in PEM form: blocks from the first line to the last.

If a report truncated the key, the block ends before the first line that is neither base64 nor a
PEM header, so that the following text is kept.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ci_agent_eval.redaction.known_secrets import REDACTED

BEGIN = "-----BEGIN "
"""A text without it contains no key."""

_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_HEAD = re.compile(BEGIN + _NAME)
_END = f"-----END {_NAME}"
_TAIL = re.compile(_END)

# A line break, raw or escaped by Python, JSON, XML or pytest, or between the quoted lines of
# a long text formatted by Python; then the margins of pytest and of diffs.
_BREAK = (
    r"(?:[\r\n]|\\{1,8}[nrt]|&#(?:0?9|10|13|x[aAdD9]);|#x0[AD9]"
    r"|['\"][ \t]*+\n[ \tE]*+['\"])"
)
_GAP = rf"(?:{_BREAK}|[ \t]|[E|>+-](?=[ \t]))*+"
_HEADER = r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID): [^\r\n\\<&\"']{0,200}"
_LINE_ENDS = rf"(?=[ \t]*+(?:{_BREAK}|['\"<&)]|\.\.\.|-----|\Z))"
_LINE = rf"(?:{_HEADER}|[A-Za-z0-9+/]{{16,}}+={{0,2}}+|[A-Za-z0-9+/]++={{0,2}}+{_LINE_ENDS})"
_REST = re.compile(rf"(?:{_GAP}{_LINE})*+(?P<end>{_GAP}{_END})?")


class BlockRest(NamedTuple):
    """The continuation of a key's block."""

    end: int
    """Offset of the end of the block, as far as the text contains it."""
    closed: bool
    """Whether the block's last line is present."""


def remove_private_keys(text: str) -> str:
    """Replace private keys by `[redacted]`."""
    pieces: list[str] = []
    position = 0
    while head := _HEAD.search(text, position):
        pieces += [text[position : head.start()], REDACTED]
        position = _find_rest(text, head.end()).end
    return "".join([*pieces, text[position:]])


def has_open_block(text: str) -> bool:
    """Say whether a private key begins in the text and may continue after it."""
    last = BlockRest(0, closed=True)
    while head := _HEAD.search(text, last.end):
        last = _find_rest(text, head.end())
    return not last.closed and not text[last.end :].strip()


def match_rest(line: str) -> BlockRest:
    """Match the continuation of an open block in its next line."""
    rest = _REST.match(line)
    if rest is None:  # pragma: no cover - it matches the empty text
        return BlockRest(0, closed=False)
    return BlockRest(rest.end(), rest["end"] is not None)


def _find_rest(text: str, position: int) -> BlockRest:
    """Find the end of a block, given the end of its first line.

    If its last line follows before another key or a tag begins, everything in between belongs to
    the key, regardless of its form.
    """
    limit = text.find(BEGIN, position)
    limit = len(text) if limit < 0 else limit
    tag = text.find("<", position, limit)
    tail = _TAIL.search(text, position, limit if tag < 0 else tag)
    if tail is not None:
        return BlockRest(tail.end(), closed=True)
    rest = _REST.match(text, position)
    return BlockRest(position if rest is None else rest.end(), closed=False)
