"""Secrets shortened with an ellipsis in a report: `'abc...xyz'`. Pure.

pytest shortens both sides of a failed comparison to 30 characters, which is most of a token.
So next to an ellipsis a few characters are enough to recognize a secret.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

ELLIPSES = ("...", "\u2026", "\\u2026")
"""The ellipses of pytest and of this program, and the latter in JSON."""

MIN_SHOWN = 4
"""Fewer characters are not redacted: they would match by chance."""

_MAX_SHOWN = 64
_ELLIPSIS = re.compile(r"\.{3,}|\u2026|\\u2026")

_Index = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class ShortenedSecrets:
    """An index of secrets by their first and last characters."""

    heads: _Index
    tails: _Index
    all_forms: str

    @classmethod
    def of(cls, forms: Sequence[str]) -> Self:
        """Index the forms by their first and last characters."""
        heads: _Index = defaultdict(list)
        tails: _Index = defaultdict(list)
        for form in forms:
            heads[form[:MIN_SHOWN]].append(form)
            tails[form[-MIN_SHOWN:]].append(form)
        return cls(dict(heads), dict(tails), "\0".join(forms))

    def find_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the spans where a secret's start, end or middle is next to an ellipsis."""
        if not self.heads:
            return
        marks = list(_ELLIPSIS.finditer(text))
        # Each character is checked at most twice: for the ellipses before and after it.
        stops = [0, *(mark.end() for mark in marks)]
        starts = [*(mark.start() for mark in marks), len(text)]
        for number, mark in enumerate(marks):
            first = max(stops[number], mark.start() - _MAX_SHOWN)
            last = min(starts[number + 1], mark.end() + _MAX_SHOWN)
            yield from self._before(text[first : mark.start()], first)
            after = text[mark.end() : last]
            # Shortened twice: a piece of the secret between two ellipses.
            if last == starts[number + 1] != len(text) and self._is_piece(after):
                yield mark.end(), last
            else:
                yield from self._after(after, mark.end())

    def _is_piece(self, text: str) -> bool:
        return len(text) >= MIN_SHOWN and text in self.all_forms

    def _before(self, text: str, offset: int) -> Iterator[tuple[int, int]]:
        for start in range(len(text) - MIN_SHOWN + 1):
            for form in self.heads.get(text[start : start + MIN_SHOWN], ()):
                if form.startswith(text[start:]):
                    yield offset + start, offset + len(text)
                    return

    def _after(self, text: str, offset: int) -> Iterator[tuple[int, int]]:
        for end in range(len(text), MIN_SHOWN - 1, -1):
            for form in self.tails.get(text[end - MIN_SHOWN : end], ()):
                if form.endswith(text[:end]):
                    yield offset, offset + end
                    return
