"""A cache that drops the least recently used entries."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(slots=True)
class LruCache(Generic[V]):
    """Keeps the `max_entries` most recently used values."""

    max_entries: int
    _values: OrderedDict[str, V] = field(default_factory=OrderedDict)

    def put(self, key: str, value: V) -> None:
        """Store a value, and drop the oldest one above the limit."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self.max_entries:
            self._values.popitem(last=False)

    def find(self, key: str) -> V | None:
        """Return a value and mark it as used; None if it is missing."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def forget(self, key: str) -> None:
        """Remove a key."""
        self._values.pop(key, None)
