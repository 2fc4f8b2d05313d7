"""The message of a failed case: the first line that says more than the outcome. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_LENGTH = 1000

_OUTCOMES = frozenset(
    {"error", "failed", "failure", "fail", "none", "test error", "test failed", "test failure"}
)
"""Messages that repeat the outcome (gotestsum, go-junit-report, nose2)."""
_NOISE = re.compile(
    r"=== (?:RUN|PAUSE|CONT|NAME)\b|--- FAIL:|FAIL\b|Error Trace:"  # Go, testify
    r"|(?:● )?Test suite failed to run$"  # jest
    r"|(?:\u276f )?\(?(?:in test file )?[^\s:]{1,400}(?::|, line )\d{1,7}(?::\d{1,7})?[):]?$"
    r"|[\W_]*$"  # rules
)
_GO_PLACE = re.compile(r"[\w.-]{1,200}\.go:\d{1,7}:\s*")
_GO_LINE = re.compile(r"^[ \t]+[\w.-]{1,200}\.go:\d{1,7}:", re.MULTILINE)
_GO_OUTPUT = re.compile(r"^[ \t]*(?:=== RUN|--- FAIL:)", re.MULTILINE)
_ANSI = re.compile(r"[\x1b\ufffd]\[[0-9;]{0,20}[A-Za-z]")
"""Escape sequences of terminals; the reader of XML replaces their first character by U+FFFD."""
_PYTHON_TRACEBACK = "Traceback (most recent call last):"
_PYTHON_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: |$)")
_AFTER_PLACE = ">:]\u203a"
"""The characters that end a test's place before its name."""
_MOST_CONTINUED = 5
"""Number of lines that continue a first line that ends with a colon (GoogleTest)."""


def find_message(name: str, message: str | None, text: str | None) -> str | None:
    """Return the first informative line of a message or a failure text, else any line, or None."""
    message, text = remove_ansi(message), remove_ansi(text)
    informative = [*_iterate_informative(message), *_iterate_informative(find_core(text))]
    return next(
        (line for line in informative if not _is_empty_phrase(line, name)),
        _find_first_line(message) or _find_first_line(text),
    )


def remove_ansi(text: str | None) -> str | None:
    """Return a text without escape sequences of terminals."""
    return None if text is None else _ANSI.sub("", text)


def find_core(text: str | None) -> str | None:
    """Return the part of a failure text that explains the failure.

    Python writes its exception last. Go writes logs before the failure, in the same form.
    """
    if text is None:
        return None
    if _PYTHON_TRACEBACK in text:
        trace = text.rpartition(_PYTHON_TRACEBACK)[2].splitlines()
        at = next((i for i, line in enumerate(trace) if _PYTHON_EXCEPTION.match(line)), 0)
        return "\n".join(trace[at:])
    if _GO_OUTPUT.search(text):
        *_, last = (0, *(line.start() for line in _GO_LINE.finditer(text)))
        return text[last:]
    return text


def _is_empty_phrase(line: str, name: str) -> bool:
    """Return whether a line only repeats the outcome, or the test's name and place."""
    if line.lower().rstrip(".!") in _OUTCOMES:
        return True
    before, found, after = line.strip("─- ").rpartition(name) if name else (line, "", "")
    return bool(found) and not after and (not before or before.rstrip()[-1:] in _AFTER_PLACE)


def _iterate_informative(text: str | None) -> Iterator[str]:
    lines = [_GO_PLACE.sub("", line.strip(), count=1) for line in (text or "").splitlines()]
    for at, line in enumerate(lines):
        if not _NOISE.match(line):
            end = at + 1 + (_MOST_CONTINUED if line.endswith(":") else 0)
            yield " ".join(" ".join(lines[at:end]).split())[:MAX_LENGTH]


def _find_first_line(text: str | None) -> str | None:
    for line in (text or "").splitlines():
        if line.strip():
            return line.strip()[:MAX_LENGTH]
    return None
