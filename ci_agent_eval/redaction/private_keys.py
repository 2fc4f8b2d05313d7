"""Private keys in PEM form: the block from its first line to its last, and not a line more.

A report may have cut a key's end off. Then the block ends before the first line that is
neither base64 nor a PEM header, so that what follows is not lost with it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ci_agent_eval.redaction.known_secrets import REDACTED

BEGIN = "-----BEGIN "
"""Without it a text holds no key."""

_NAME = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_HEAD = re.compile(BEGIN + _NAME)
_END = f"-----END {_NAME}"
_TAIL = re.compile(_END)

# A line break as it is, as Python, JSON, XML and pytest escape it, or between the quoted
# lines of a long text that Python laid out; then the margins of pytest and of diffs.
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
    """What was found where a key's block goes on."""

    end: int
    """Where the block ends in the text, as far as the text shows it."""
    closed: bool
    """The block's last line was there."""


def remove_private_keys(text: str) -> str:
    """Cut out private keys."""
    pieces: list[str] = []
    position = 0
    while head := _HEAD.search(text, position):
        pieces += [text[position : head.start()], REDACTED]
        position = _find_rest(text, head.end()).end
    return "".join([*pieces, text[position:]])


def has_open_block(text: str) -> bool:
    """Say whether a private key begins in the text and may go on after it."""
    last = BlockRest(0, closed=True)
    while head := _HEAD.search(text, last.end):
        last = _find_rest(text, head.end())
    return not last.closed and not text[last.end :].strip()


def match_rest(line: str) -> BlockRest:
    """Say how far an open block goes on in its next line."""
    rest = _REST.match(line)
    if rest is None:  # pragma: no cover - it matches the empty text
        return BlockRest(0, closed=False)
    return BlockRest(rest.end(), rest["end"] is not None)


def _find_rest(text: str, position: int) -> BlockRest:
    """Find the end of the block whose first line ends at the position.

    With its last line in sight, and no other key's or a tag's beginning before that, all
    between the two is the key, whatever it looks like.
    """
    limit = text.find(BEGIN, position)
    limit = len(text) if limit < 0 else limit
    tag = text.find("<", position, limit)
    tail = _TAIL.search(text, position, limit if tag < 0 else tag)
    if tail is not None:
        return BlockRest(tail.end(), closed=True)
    rest = _REST.match(text, position)
    return BlockRest(position if rest is None else rest.end(), closed=False)
