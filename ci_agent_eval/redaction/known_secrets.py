"""Search for known secrets in a text: in all their forms, whole, truncated or shortened. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from ci_agent_eval.redaction.environment_secrets import MIN_SECRET, is_structured
from ci_agent_eval.redaction.secret_forms import build_base64_forms, build_text_forms

REDACTED = "[redacted]"

MIN_CUT = 16
"""Shortest beginning or end of a long secret that is recognized."""

LONG = 2 * MIN_CUT
"""Minimum length of secrets that are also searched in parts, as reports truncate long values."""

MIN_SHOWN = 4
"""Next to an ellipsis so many characters are enough; fewer would match by chance.

pytest shortens both sides of a failed comparison to 30 characters, which is most of a token.
"""

_MAX_SHOWN = 64
_ELLIPSIS = re.compile(r"\.{3,}|\u2026|\\u2026")
"""The ellipses of pytest and of this program, and the latter in JSON."""
_RUN = re.compile(r"[A-Za-z0-9]+")
_ENTITY = re.compile(r"&#?[A-Za-z0-9]{1,8};")
_LONGEST_ENTITY = 11

Span = tuple[int, int]


class _Forms(NamedTuple):
    """The forms of one secret in files."""

    core: str
    """A text that all forms contain: one search excludes them all."""
    whole: tuple[str, ...]
    cut: tuple[str, ...]
    """Forms that are also redacted if only their beginning or end is present."""
    shortened: tuple[str, ...]
    """Forms that are also redacted if a few characters stand next to an ellipsis."""


@lru_cache(maxsize=1024)
def _build_forms(secret: str) -> tuple[_Forms, ...]:
    shortest = min(MIN_SECRET, len(secret))
    texts = _sort_forms(form for form in build_text_forms(secret) if len(form) >= shortest)
    encoded = build_base64_forms(secret.encode("utf-8", "surrogateescape"))
    base64 = _sort_forms(form for form in encoded if len(form) >= MIN_SECRET)
    # Parts of a URL or JSON are not secret; its secret parts are found separately.
    has_parts = not is_structured(secret)
    is_long = has_parts and len(secret) >= LONG
    core = max(_RUN.findall(secret), key=len, default="")
    in_text = _Forms(core, texts, texts if is_long else (), texts if has_parts else ())
    in_base64 = (
        _Forms(form, (form,), (form,) if is_long and len(form) >= LONG else (), ())
        for form in base64
    )
    return (in_text, *in_base64)


def _sort_forms(forms: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(forms), key=lambda form: (-len(form), form)))


class KnownSecrets:
    """An index of secrets in all their forms."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = [forms for secret in sorted(secrets) for forms in _build_forms(secret)]
        self._heads: dict[str, list[str]] = defaultdict(list)
        self._tails: dict[str, list[str]] = defaultdict(list)
        shortened = _sort_forms(form for forms in self._forms for form in forms.shortened)
        for form in shortened:
            self._heads[form[:MIN_SHOWN]].append(form)
            self._tails[form[-MIN_SHOWN:]].append(form)
        self._all_shortened = "\0".join(shortened)
        cut = {form for forms in self._forms for form in forms.cut}
        words = {forms.core for forms in self._forms}
        words |= {end for form in cut for end in (form[:MIN_CUT], form[-MIN_CUT:])}
        patterns = [*map(re.escape, sorted(words)), *([_ELLIPSIS.pattern] if shortened else ())]
        self.any_part = re.compile("|".join(patterns)) if patterns else None
        """A pattern that every text with a part of a secret matches; None without secrets."""

    def remove(self, text: str) -> str:
        """Replace each secret and each part of one by a mark."""
        spans = [*self._find_forms(text), *self._find_shortened(text)]
        return _replace_spans(text, spans) if spans else text

    def _find_forms(self, text: str) -> Iterator[Span]:
        for core, whole, cut, _ in self._forms:
            for form in whole if core in text else ():
                start = text.find(form)
                while start >= 0:
                    yield start, start + len(form)
                    start = text.find(form, start + len(form))
            for form in cut:
                yield from _find_heads(text, form)
                yield from _find_tails(text, form)

    def _find_shortened(self, text: str) -> Iterator[Span]:
        """Yield the spans where a secret's start, end or middle is next to an ellipsis."""
        if not self._heads:
            return
        marks = list(_ELLIPSIS.finditer(text))
        # Each character is checked at most twice: for the ellipses before and after it.
        stops = [0, *(mark.end() for mark in marks)]
        starts = [*(mark.start() for mark in marks), len(text)]
        for number, mark in enumerate(marks):
            first = max(stops[number], mark.start() - _MAX_SHOWN)
            last = min(starts[number + 1], mark.end() + _MAX_SHOWN)
            yield from self._find_before(text[first : mark.start()], first)
            after = text[mark.end() : last]
            # Shortened twice: a piece of the secret between two ellipses.
            is_between = last == starts[number + 1] != len(text)
            if is_between and len(after) >= MIN_SHOWN and after in self._all_shortened:
                yield mark.end(), last
            else:
                yield from self._find_after(after, mark.end())

    def _find_before(self, text: str, offset: int) -> Iterator[Span]:
        for start in range(len(text) - MIN_SHOWN + 1):
            for form in self._heads.get(text[start : start + MIN_SHOWN], ()):
                if form.startswith(text[start:]):
                    yield offset + start, offset + len(text)
                    return

    def _find_after(self, text: str, offset: int) -> Iterator[Span]:
        for end in range(len(text), MIN_SHOWN - 1, -1):
            for form in self._tails.get(text[end - MIN_SHOWN : end], ()):
                if form.endswith(text[:end]):
                    yield offset, offset + end
                    return


def _find_heads(text: str, form: str) -> Iterator[Span]:
    head = form[:MIN_CUT]
    start = text.find(head)
    while start >= 0:
        length = _count_common_prefix(text[start : start + len(form)], form)
        yield start, start + length
        start = text.find(head, start + length)


def _find_tails(text: str, form: str) -> Iterator[Span]:
    tail, backwards = form[-MIN_CUT:], form[::-1]
    done, start = 0, text.find(tail)
    while start >= 0:
        end = start + MIN_CUT
        length = _count_common_prefix(text[max(done, end - len(form)) : end][::-1], backwards)
        yield end - length, end
        done, start = end, text.find(tail, end)


def _count_common_prefix(left: str, right: str) -> int:
    """Return the length of the common prefix."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _replace_spans(text: str, spans: Iterable[Span]) -> str:
    """Replace each span by the mark; overlapping spans are merged, XML entities replaced whole."""
    pieces: list[str] = []
    position = 0
    if "&" in text:
        spans = [_widen_to_entities(text, span) for span in spans]
    last_end = -1
    for start, end in sorted(spans):
        if start >= last_end:
            pieces += [text[position:start], REDACTED]
        position = last_end = max(end, last_end)
    return "".join([*pieces, text[position:]])


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
