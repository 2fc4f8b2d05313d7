"""Counts with their nouns, and texts on one line, for messages of every kind."""

from __future__ import annotations


def pluralize(
    number: int, noun: str, plural: str | None = None, *, figure: str | None = None
) -> str:
    """Write a count with its noun: `1 call`, `2 calls`.

    `plural` is the noun's irregular plural, `figure` the number as it is to be written.
    """
    return f"{figure or number} {noun if number == 1 else plural or noun + 's'}"


def one_line(text: str) -> str:
    """Return a text with every run of whitespace as one blank."""
    return " ".join(text.split())


def shorten_text(text: str, limit: int) -> str:
    """Return a text on one line; one longer than `limit` is cut to it and ends with a mark."""
    line = one_line(text)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
