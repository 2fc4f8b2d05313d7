"""Search for known secrets in a text, whole or truncated, and their replacement by a mark. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

REDACTED = "[redacted]"

MIN_CUT = 16
"""Shortest beginning or end of a long secret that is recognized."""

LONG = 2 * MIN_CUT
"""Minimum length of secrets that are also searched in parts, as reports truncate long values."""

_RUN = re.compile(r"[A-Za-z0-9]+")
_ENTITY = re.compile(r"&#?[A-Za-z0-9]{1,8};")
_LONGEST_ENTITY = 11

Span = tuple[int, int]


class FormGroup(NamedTuple):
    """Forms that all contain the same core: one search excludes them all."""

    core: str
    forms: tuple[str, ...]


def group_forms(forms: Iterable[str], core_of: str) -> FormGroup:
    """Group the forms of one secret around its longest run of letters and digits."""
    core = max(_RUN.findall(core_of), key=len, default="")
    kept = sorted(forms, key=lambda form: (-len(form), form))
    return FormGroup(core, tuple(kept))


def find_spans(text: str, groups: Iterable[FormGroup], cut: Iterable[str]) -> list[Span]:
    """Return the spans of the forms in the text, and of parts of the forms in `cut`."""
    spans: list[Span] = []
    for core, forms in groups:
        if core in text:
            for form in forms:
                spans += _find_whole(text, form)
    for form in cut:
        spans += _find_heads(text, form)
        spans += _find_tails(text, form)
    return spans


def replace_spans(text: str, spans: Iterable[Span]) -> str:
    """Replace each span by the mark; overlapping spans are merged, XML entities replaced whole."""
    pieces: list[str] = []
    position = 0
    if "&" in text:
        spans = [_widen_to_entities(text, span) for span in spans]
    for start, end in _merge_spans(spans):
        pieces += [text[position:start], REDACTED]
        position = end
    return "".join([*pieces, text[position:]])


def _find_whole(text: str, form: str) -> Iterator[Span]:
    start = text.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + len(form))


def _find_heads(text: str, form: str) -> Iterator[Span]:
    head = form[:MIN_CUT]
    start = text.find(head)
    while start >= 0:
        length = _count_common_prefix(text[start : start + len(form)], form)
        yield start, start + length
        start = text.find(head, start + length)


def _find_tails(text: str, form: str) -> Iterator[Span]:
    tail, backwards = form[-MIN_CUT:], form[::-1]
    done, found = 0, text.find(tail)
    while found >= 0:
        end = found + MIN_CUT
        length = _count_common_prefix(text[max(done, end - len(form)) : end][::-1], backwards)
        yield end - length, end
        done, found = end, text.find(tail, end)


def _count_common_prefix(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _merge_spans(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _widen_to_entities(text: str, span: Span) -> Span:
    """Extend a span over XML entities that it cuts."""
    start, end = span
    before = text.rfind("&", max(0, start - _LONGEST_ENTITY), start)
    if before >= 0 and (entity := _ENTITY.match(text, before)) and entity.end() > start:
        start = before
    inside = text.rfind("&", max(start, end - _LONGEST_ENTITY), end)
    if inside >= 0 and (entity := _ENTITY.match(text, inside)):
        end = max(end, entity.end())
    return start, end
