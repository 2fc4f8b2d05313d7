"""Changes to a JSON text that leave every other byte as it is. Pure.

Reading and writing the whole would be simpler, but it would rewrite the layout of a file that
people keep by hand, and its numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_BLANKS = " \t\r\n"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class JsonMember:
    """A member of an object or an item of a list: where it starts, its value, where it ends."""

    start: int
    value: int
    end: int
    key: str = ""


def list_members(text: str, start: int) -> list[JsonMember]:
    """Return the members of the object, or the items of the list, that starts at `start`.

    The text must be valid JSON.
    """
    keyed = text[start] == "{"
    at, found = _skip_blanks(text, start + 1), []
    while text[at] not in "}]":
        first, key = at, ""
        if keyed:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip_blanks(text, _skip_blanks(text, at) + 1)
        value = at
        _, end = _DECODER.raw_decode(text, at)
        found.append(JsonMember(first, value, end, key))
        at = _skip_blanks(text, end)
        if text[at] == ",":
            at = _skip_blanks(text, at + 1)
    return found


def find_member(text: str, start: int, key: str) -> JsonMember | None:
    """Return the member of that key; of several the last, which is the one that counts."""
    return next((each for each in reversed(list_members(text, start)) if each.key == key), None)


def append_member(text: str, start: int, value: object, key: str = "") -> str:
    """Put a member at the end of the object or list that starts at `start`."""
    present = list_members(text, start)
    label = f"{json.dumps(key)}: " if key else ""
    layout = _detect_layout(text, start, present)
    new = label + layout.render(value)
    if present:
        at = present[-1].end
        return f"{text[:at]},{layout.before}{new}{text[at:]}"
    close = _skip_blanks(text, start + 1)
    return f"{text[: start + 1]}{layout.before}{new}{layout.after}{text[close:]}"


def remove_member(text: str, start: int, at: int) -> str:
    """Take out the member or item with that position, and the comma that parted it."""
    present = list_members(text, start)
    gone = present[at]
    if len(present) == 1:
        close = _skip_blanks(text, gone.end)
        return text[: start + 1] + text[close:]
    if at == 0:
        return text[: gone.start] + text[present[1].start :]
    return text[: present[at - 1].end] + text[gone.end :]


@dataclass(frozen=True, slots=True)
class _Layout:
    before: str
    """What stands before a member."""
    after: str
    """What stands between the last member and the bracket."""
    render: Callable[[object], str]


def _detect_layout(text: str, start: int, present: Sequence[JsonMember]) -> _Layout:
    """Find out how the text is laid out at this place: on one line, or how far in."""
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _detect_indent(text)
    if unit is None:
        return _Layout(" " if present else "", "", json.dumps)
    outer = _get_line_indent(text, start)
    inner = _get_line_indent(text, present[-1].start) if present else outer + unit

    def render(value: object) -> str:
        lines = json.dumps(value, indent=unit).split("\n")
        return f"{newline}{inner}".join(lines)

    return _Layout(newline + inner, newline + outer, render)


def _detect_indent(text: str) -> str | None:
    """Return how far members of the outermost object are in; None where all is on one line."""
    stripped = text.lstrip(_BLANKS)
    start = len(text) - len(stripped)
    present = list_members(text, start)
    if not present:
        return "  "
    between = text[start + 1 : present[0].start]
    return between.rpartition("\n")[2] or "  " if "\n" in between else None


def _get_line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at
