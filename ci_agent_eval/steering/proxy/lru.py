"""A memory that forgets what was asked for least lately."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(slots=True)
class LruCache(Generic[V]):
    """Keeps the latest `most` values by their keys."""

    most: int
    _values: OrderedDict[str, V] = field(default_factory=OrderedDict)

    def put(self, key: str, value: V) -> None:
        """Remember a value, and forget the oldest if there are too many."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self.most:
            self._values.popitem(last=False)

    def find(self, key: str) -> V | None:
        """Return a value that is remembered, and count it as the latest; else None."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def forget(self, key: str) -> None:
        """Remember a key no longer."""
        self._values.pop(key, None)
