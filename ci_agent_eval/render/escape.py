"""Escape foreign text for Markdown, terminals and HTML comments.

Text of episodes, tests, files and APIs is data. In Markdown it stands in
code spans and fenced blocks only, because GitHub's filters for mentions, issue
references, commits, URLs and emoji leave code alone; a character reference such as
`&#64;` would not help, they run after it is decoded.
"""

from __future__ import annotations

import hashlib
import re
from html import escape
from urllib.parse import quote

from ci_agent_eval.contract.wording import without_commands

EMPTY = "(empty)"
"""Placeholder of a text without visible characters."""

_LINE_ENDS = re.compile("\r\n|[\n\v\f\r\x85\u2028\u2029]")

# Ranges instead of unicodedata: its tables differ between versions of Python, our bytes must not.
_UNSEEN = re.compile(
    "["
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"  # controls but tabs and line ends
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"  # fillers, soft hyphens
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # zero width, bidi, interlinear
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # shorthand, music, tags
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # surrogates, noncharacters
    "]"
)

_BACKTICKS = re.compile("`+")

_MARKER_LIMIT = 60


def visible_line(text: str, limit: int) -> str:
    """Return the text on one line, cut to `limit`, with invisible characters made visible."""
    text, whole = text[:limit], len(text)
    shown = (
        text if _is_plain(text) else _LINE_ENDS.sub("⏎", _show_invisible(text)).replace("\t", " ")
    )
    return shown + more_characters(whole - limit)


def visible_lines(text: str, limit: int) -> str:
    """Return the text in its lines, cut to `limit`, with invisible characters made visible."""
    text, whole = text[:limit], len(text)
    shown = text if _is_plain(text) else _LINE_ENDS.sub("\n", _show_invisible(text))
    return shown + more_characters(whole - limit)


def more_characters(left_out: int) -> str:
    """Return the note on the characters that were cut off; empty if none were."""
    return f"… ({left_out:,} more characters)" if left_out > 0 else ""


def cut_bytes(text: str, limit: int) -> str:
    """Cut the text to at most `limit` UTF-8 bytes, whole characters, an ellipsis where cut."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= limit:
        return data.decode("utf-8")
    return data[: limit - len("…".encode())].decode("utf-8", "ignore") + "…"


def code_span(text: str, *, limit: int = 200, cell: bool = False) -> str:
    """Return the text as a code span; `cell`: escape its pipes for a table."""
    shown = visible_line(text, limit)
    if not shown.strip():
        shown = EMPTY
    if cell:
        shown = _escape_pipes(shown)
    fence = "`" * (_longest_run(shown) + 1)
    # CommonMark strips one space from both ends if both are there.
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def cut_middle(text: str, limit: int) -> str:
    """Return the text on one line; of a long one the beginning and the end."""
    shown = visible_line(text, max(len(text), 1))
    if len(shown) <= limit:
        return shown
    tail = (limit - 1) // 2
    return f"{shown[: limit - 1 - tail]}…{shown[-tail:]}"


def html_code(text: str, limit: int) -> str:
    """Return the text as an element of HTML, on one line, from its beginning."""
    shown = visible_line(text, limit)
    return f"<code>{escape(shown) if shown.strip() else EMPTY}</code>"


def code_block(text: str, limit: int, language: str = "text") -> str:
    """Return the text as a fenced code block; `language` is a word of our own."""
    shown = visible_lines(text, limit)
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def escape_terminal(text: str, limit: int = 400) -> str:
    """Return the text on one line without control characters and workflow commands."""
    return without_commands(visible_line(text, limit).strip() or EMPTY)


def comment_token(text: str) -> str:
    """Return the text as one word for an HTML comment; different texts stay different words."""
    word = quote(text.encode("utf-8", "backslashreplace"), safe="").replace("-", "%2D")
    if len(word) <= _MARKER_LIMIT:
        return word
    digest = hashlib.sha256(word.encode()).hexdigest()[:16]
    return f"{word[:40].rstrip('%')}.{digest}"


def _is_plain(text: str) -> bool:
    """Check quickly that all characters are printable ASCII."""
    return text.isascii() and text.isprintable()


def _show_invisible(text: str) -> str:
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


def _escape_pipes(text: str) -> str:
    # Parsers disagree on a backslash before an escaped pipe, so that pair gets another bar.
    return text.replace("\\|", "\\¦").replace("|", "\\|")
