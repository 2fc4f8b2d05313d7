"""Size limits of the page, and the counts of omitted texts and entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from ci_agent_eval.render.escape import visible_line, visible_lines

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
