"""Edits of a JSON text that preserve all other bytes, including comments. Pure.

Parsing and serializing the whole text would be simpler, but it would change the layout and the
numbers of a file that people edit by hand. Comments and trailing commas are blanked out to find
the offsets of members; the edits apply to the original text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_BLANKS = " \t\r\n"
_DECODER = json.JSONDecoder()
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<comment>//[^\r\n]*|/\*.*?\*/)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<comma>,)(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class JsonMember:
    """The offsets of an object's member or a list's item: its start, value and end."""

    start: int
    value: int
    end: int
    key: str = ""


def blank_comments(text: str) -> str:
    """Return a text of equal length in which comments and trailing commas are blanks."""

    def blank(match: re.Match[str]) -> str:
        if match.lastgroup is None:
            return match[0]
        return "".join(char if char in _BLANKS else " " for char in match[0])

    return _TRAILING_COMMA.sub(blank, _TOKEN.sub(blank, text))


def parse_value(text: str, member: JsonMember) -> object:
    """Return the value of a member."""
    return json.loads(blank_comments(text)[member.value : member.end])


def list_members(text: str, start: int) -> list[JsonMember]:
    """Return the members of the object, or the items of the list, at offset `start`.

    The text must be valid JSON, apart from comments and trailing commas. Empty if the value at
    `start` is neither.
    """
    return _list_plain_members(blank_comments(text), start)


def _list_plain_members(plain: str, start: int) -> list[JsonMember]:
    if plain[start] not in "{[":
        return []
    is_object = plain[start] == "{"
    at, found = _skip_blanks(plain, start + 1), []
    while plain[at] not in "}]":
        first, key = at, ""
        if is_object:
            key, at = _DECODER.raw_decode(plain, at)
            at = _skip_blanks(plain, _skip_blanks(plain, at) + 1)
        value = at
        _, end = _DECODER.raw_decode(plain, at)
        found.append(JsonMember(first, value, end, key))
        at = _skip_blanks(plain, end)
        if plain[at] == ",":
            at = _skip_blanks(plain, at + 1)
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
    if not members:
        close = _skip_blanks(text, start + 1)
        if text[close] in "}]":
            return f"{text[: start + 1]}{layout.before}{new}{layout.after}{text[close:]}"
        return f"{text[: start + 1]}{layout.before}{new}{text[start + 1 :]}"
    end = members[-1].end
    comma = _find_trailing_comma(text, end)
    if comma is not None:
        at = _skip_line_comment(text, comma + 1)
        return f"{text[:at]}{layout.before}{new},{text[at:]}"
    at = _skip_line_comment(text, end)
    return f"{text[:end]},{text[end:at]}{layout.before}{new}{text[at:]}"


def remove_member(text: str, start: int, at: int) -> str:
    """Remove the member or item at an index, and its comma."""
    members = list_members(text, start)
    removed = members[at]
    end = removed.end
    trailing = _find_trailing_comma(text, end) if at == len(members) - 1 else None
    if len(members) == 1:
        end = end if trailing is None else trailing + 1
        close = _skip_blanks(text, end)
        if text[close] in "}]" and not text[start + 1 : removed.start].strip():
            return text[: start + 1] + text[close:]
        return text[: start + 1] + text[start + 1 : removed.start].rstrip() + text[end:]
    if at == 0:
        return text[: removed.start] + text[members[1].start :]
    comma = _skip_blanks(blank_comments(text), members[at - 1].end)
    after = _skip_line_comment(text, comma + 1)
    if trailing is not None:
        return text[:after] + text[trailing + 1 :]
    return text[:comma] + text[comma + 1 : after] + text[end:]


def _find_trailing_comma(text: str, end: int) -> int | None:
    """Return the offset of the comma between the last member's end and the bracket, if any."""
    plain = _TOKEN.sub(lambda m: m[0] if m.lastgroup is None else " " * len(m[0]), text)
    at = _skip_blanks(plain, end)
    return at if plain[at] == "," else None


def _skip_line_comment(text: str, at: int) -> int:
    """Return the end of a comment that follows on the same line; `at` if there is none."""
    match = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)").match(text, at)
    return match.end() if match else at


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
    plain = blank_comments(text)
    start = len(plain) - len(plain.lstrip(_BLANKS))
    members = _list_plain_members(plain, start)
    if not members:
        return "  "
    between = plain[start + 1 : members[0].start]
    return between.rpartition("\n")[2] or "  " if "\n" in between else None


def _get_line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at
