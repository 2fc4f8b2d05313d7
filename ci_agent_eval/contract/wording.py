"""Text helpers for messages: counts with nouns, single lines, truncation."""

from __future__ import annotations


def pluralize(
    number: int, noun: str, plural: str | None = None, *, figure: str | None = None
) -> str:
    """Return a count with its noun: `1 call`, `2 calls`.

    `plural` is the irregular plural of the noun, `figure` the formatted number.
    """
    return f"{figure or number} {noun if number == 1 else plural or noun + 's'}"


def one_line(text: str) -> str:
    """Collapse each run of whitespace to one space."""
    return " ".join(text.split())


def shorten_text(text: str, limit: int) -> str:
    """Return a text on one line, truncated to `limit` characters with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def make_printable(text: str) -> str:
    """Replace control characters, so that text from tests cannot control the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
