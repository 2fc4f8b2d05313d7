"""Edits of a JSON text that preserve all other bytes. Pure.

Parsing and serializing the whole text would be simpler, but it would change the layout and the
numbers of a file that people edit by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_BLANKS = " \t\r\n"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class JsonMember:
    """The offsets of an object's member or a list's item: its start, value and end."""

    start: int
    value: int
    end: int
    key: str = ""


def list_members(text: str, start: int) -> list[JsonMember]:
    """Return the members of the object, or the items of the list, at offset `start`.

    The text must be valid JSON.
    """
    is_object = text[start] == "{"
    at, found = _skip_blanks(text, start + 1), []
    while text[at] not in "}]":
        first, key = at, ""
        if is_object:
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
    """Return the last member with this key, which is the effective one; None if missing."""
    return next((each for each in reversed(list_members(text, start)) if each.key == key), None)


def append_member(text: str, start: int, value: object, key: str = "") -> str:
    """Append a member to the object or list at offset `start`."""
    members = list_members(text, start)
    label = f"{json.dumps(key)}: " if key else ""
    layout = _detect_layout(text, start, members)
    new = label + layout.render(value)
    if members:
        at = members[-1].end
        return f"{text[:at]},{layout.before}{new}{text[at:]}"
    close = _skip_blanks(text, start + 1)
    return f"{text[: start + 1]}{layout.before}{new}{layout.after}{text[close:]}"


def remove_member(text: str, start: int, at: int) -> str:
    """Remove the member or item at an index, and its comma."""
    members = list_members(text, start)
    removed = members[at]
    if len(members) == 1:
        close = _skip_blanks(text, removed.end)
        return text[: start + 1] + text[close:]
    if at == 0:
        return text[: removed.start] + text[members[1].start :]
    return text[: members[at - 1].end] + text[removed.end :]


@dataclass(frozen=True, slots=True)
class _Layout:
    before: str
    """The blanks before a member."""
    after: str
    """The blanks between the last member and the bracket."""
    render: Callable[[object], str]


def _detect_layout(text: str, start: int, members: Sequence[JsonMember]) -> _Layout:
    """Detect the layout of the text: on one line, or with an indentation."""
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _detect_indent(text)
    if unit is None:
        return _Layout(" " if members else "", "", json.dumps)
    outer = _get_line_indent(text, start)
    inner = _get_line_indent(text, members[-1].start) if members else outer + unit

    def render(value: object) -> str:
        lines = json.dumps(value, indent=unit).split("\n")
        return f"{newline}{inner}".join(lines)

    return _Layout(newline + inner, newline + outer, render)


def _detect_indent(text: str) -> str | None:
    """Return the indentation of the root's members; None if all is on one line."""
    stripped = text.lstrip(_BLANKS)
    start = len(text) - len(stripped)
    members = list_members(text, start)
    if not members:
        return "  "
    between = text[start + 1 : members[0].start]
    return between.rpartition("\n")[2] or "  " if "\n" in between else None


def _get_line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at
