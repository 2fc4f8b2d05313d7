"""Texts, files and JSON of the page: made visible, cut to the size limits, and counted where cut.

Only `<` ends a script element or opens a comment in it
(https://html.spec.whatwg.org/multipage/scripting.html#restrictions-for-contents-of-script-elements);
in JSON it stands in strings only, where it may be written as an escape. So may everything
that is not ASCII, the line ends U+2028 and U+2029 among it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from ci_agent_eval.render.escape import visible_line, visible_lines
from ci_agent_eval.render.links import Links, is_web_address, line_number

T = TypeVar("T")

# Tools, checks and budgets have the same names in thousands of episodes.
_name = lru_cache(4096)(visible_line)


@dataclass(frozen=True, slots=True)
class PageLimits:
    """The size limits; a browser opens a page within them without a pause."""

    name: int = 300
    """Characters of a name: a scenario, a test, a tool, a check."""
    text: int = 8_000
    """Characters of any other text: a message, a result, a reason."""
    items: int = 200
    """Entries of any list: turns, calls of a turn, checks, findings."""
    conversation: int = 100_000
    """Characters of one episode's conversation."""
    scenarios: int = 20_000
    rows: int = 24_000_000
    """Bytes of the list of episodes, without conversations."""
    failing: int = 24_000_000
    """Bytes of the conversations of episodes that failed or ended in an error."""
    baseline: int = 8_000_000
    """Bytes of conversations of the base, one for each scenario that changed."""
    others: int = 24_000_000
    """Bytes of the conversations of all other episodes."""


@dataclass(slots=True)
class OmittedCounts:
    """Counts of the omissions so far."""

    texts: int = 0
    """Texts that were cut."""
    items: int = 0
    """Entries of lists."""
    conversations: int = 0
    """Episodes that are listed without their conversation."""
    episodes: int = 0
    """Episodes that are not listed."""
    scenarios: int = 0


@dataclass(frozen=True, slots=True)
class PageText:
    """Makes foreign text visible, cuts it to the limits and counts the cuts."""

    caps: PageLimits
    cut: OmittedCounts

    def name(self, text: str) -> str:
        """Return a name on one line."""
        self._count(len(text) > self.caps.name)
        return _name(text, self.caps.name)

    def text(self, text: str, limit: int | None = None) -> str:
        """Return a text in its lines, at most `limit` characters of it."""
        most = self.caps.text if limit is None else min(limit, self.caps.text)
        self._count(len(text) > most)
        return visible_lines(text, most)

    def first(self, items: Sequence[T]) -> Sequence[T]:
        """Return the entries that are shown."""
        self.cut.items += max(0, len(items) - self.caps.items)
        return items[: self.caps.items]

    def _count(self, was_cut: bool) -> None:
        self.cut.texts += was_cut


_ENCODE = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def embed_json(value: Any) -> str:
    """Return the value as ASCII JSON on one line, without `<`, `>` and `&`."""
    return _ENCODE(value).translate(_ESCAPES)


def drop_empty(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row without values that are None, False or empty; zero stays."""
    return {
        key: value
        for key, value in row.items()
        if value is not None and value is not False and value not in ("", [])
    }


@dataclass(slots=True)
class PageFiles:
    """Numbers files in the order of their use; the page holds their list once."""

    texts: PageText
    links: Links
    _numbers: dict[str, int] = field(default_factory=dict)

    def locate(self, file: str | None, line: int | None) -> list[int] | None:
        """Return a place as the file's number and its line, 0 where that is not known."""
        if not file:
            return None
        number = self._numbers.setdefault(file, len(self._numbers))
        return [number, line_number(line) or 0]

    def list_files(self) -> list[list[str | None]]:
        """Return every file: its name, and the address that `#L` and a line may follow."""
        return [[self.texts.name(file), self._address(file)] for file in self._numbers]

    def _address(self, file: str) -> str | None:
        url = self.links.blob(file, None)
        return url if is_web_address(url) else None
