"""Which items come next in the order of the run: pytest's own, or that of an xdist worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest


class ItemOrder:
    """Knows what comes after the item whose turn it is."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._at = -1
        self._next: pytest.Item | None = None
        self._worker = _find_worker(session.config)

    def turn(self, item: pytest.Item, following: pytest.Item | None) -> None:
        """Note whose turn it is; an item may come more than once."""
        self._next = following
        items: Sequence[pytest.Item] = self._session.items
        if self._worker is None:
            after = self._at + 1
            self._at = after if items[after : after + 1] == [item] else items.index(item)

    def upcoming(self, skipped: int) -> Iterator[pytest.Item]:
        """Yield the items to come but the first `skipped`, as far as they are known."""
        items: Sequence[pytest.Item] = self._session.items
        if self._worker is None:
            for at in range(self._at + 1 + skipped, len(items)):
                yield items[at]
            return
        if self._next is None:
            return
        if skipped == 0:
            yield self._next
        for index in _list_queued(self._worker)[max(skipped - 1, 0) :]:
            yield items[index]


def _find_worker(config: pytest.Config) -> Any:
    """Return xdist's object that runs the tests of this worker, if this is one."""
    if not hasattr(config, "workerinput"):
        return None
    plugins = config.pluginmanager.get_plugins()
    return next((plugin for plugin in plugins if hasattr(plugin, "torun")), None)


def _list_queued(worker: Any) -> list[int]:
    """Return the indices of items that wait in the worker's queue.

    Where idle workers steal from others, nothing that still waits is sure to be run here.
    """
    if worker.config.getoption("dist", "load") == "worksteal":
        return []
    queue = worker.torun
    # The first is xdist's name for it from 3.6 on.
    waiting: Any = queue._items if hasattr(queue, "_items") else queue.queue  # noqa: SLF001 - xdist tells of one item ahead alone
    return [index for index in tuple(waiting) if isinstance(index, int)]
