"""The message of a failed case: the first line that says more than the outcome. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_LENGTH = 1000

_OUTCOMES = frozenset({"error", "failed", "failure", "fail", "test failed", "test failure"})
"""Messages that repeat the outcome (gotestsum, go-junit-report)."""
_NOISE = re.compile(
    r"=== (?:RUN|PAUSE|CONT|NAME)\b|--- FAIL:|FAIL\b|Error Trace:|[\W_]*$"  # Go, testify, rules
)
_GO_PLACE = re.compile(r"[\w.-]{1,200}\.go:\d{1,7}:\s*")


def find_message(name: str, message: str | None, text: str | None) -> str | None:
    """Return the first informative line of a message or a failure text, else any line, or None."""
    found = _find_first_line(message)
    if found is not None and not _is_empty_phrase(found, name):
        return found
    informative = (line for line in _iterate_informative(text) if not _is_empty_phrase(line, name))
    return next(informative, None) or found or _find_first_line(text)


def _is_empty_phrase(line: str, name: str) -> bool:
    """Return whether a line only repeats the outcome, or the test's name and place."""
    return line.lower().rstrip(".!") in _OUTCOMES or bool(name and line.strip("─- ").endswith(name))


def _iterate_informative(text: str | None) -> Iterator[str]:
    for line in (text or "").splitlines():
        stripped = _GO_PLACE.sub("", line.strip(), count=1)
        if not _NOISE.match(stripped):
            yield " ".join(stripped.split())[:MAX_LENGTH]


def _find_first_line(text: str | None) -> str | None:
    for line in (text or "").splitlines():
        if line.strip():
            return line.strip()[:MAX_LENGTH]
    return None
