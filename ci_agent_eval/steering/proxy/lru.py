"""A cache that drops the least recently used entries."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(slots=True)
class LruCache(Generic[V]):
    """Keeps the most recently used values within a number of entries and a total size."""

    max_entries: int
    max_size: int | None = None
    """Maximum sum of the sizes given to `put`; None: no limit."""
    _values: OrderedDict[str, tuple[V, int]] = field(default_factory=OrderedDict)
    _size: int = 0

    def put(self, key: str, value: V, size: int = 0) -> None:
        """Store a value, and drop the oldest ones above the limits."""
        self.forget(key)
        self._values[key] = (value, size)
        self._size += size
        while self._is_over_limit():
            self._size -= self._values.popitem(last=False)[1][1]

    def find(self, key: str) -> V | None:
        """Return a value and mark it as used; None if it is missing."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key][0]

    def forget(self, key: str) -> None:
        """Remove a key."""
        self._size -= self._values.pop(key, (None, 0))[1]

    def _is_over_limit(self) -> bool:
        is_too_large = self.max_size is not None and self._size > self.max_size
        return bool(self._values) and (is_too_large or len(self._values) > self.max_entries)
