"""The next items in the order of the run: pytest's own, or an xdist worker's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest


class ItemOrder:
    """The order of the items after the current one."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._at = -1
        self._next: pytest.Item | None = None
        self._worker = _find_worker(session.config)

    def set_current(self, item: pytest.Item, following: pytest.Item | None) -> None:
        """Set the current item; an item may occur more than once."""
        self._next = following
        items: Sequence[pytest.Item] = self._session.items
        if self._worker is None:
            after = self._at + 1
            self._at = after if items[after : after + 1] == [item] else items.index(item)

    def iter_upcoming(self, skipped: int) -> Iterator[pytest.Item]:
        """Yield the next items except the first `skipped`, as far as they are known."""
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
    """Return xdist's object that runs the tests of this worker, or None outside of workers."""
    if not hasattr(config, "workerinput"):
        return None
    plugins = config.pluginmanager.get_plugins()
    return next((plugin for plugin in plugins if hasattr(plugin, "torun")), None)


def _list_queued(worker: Any) -> list[int]:
    """Return the indices of the items in the worker's queue.

    Empty if idle workers steal items: then no waiting item is sure to run here.
    """
    if worker.config.getoption("dist", "load") == "worksteal":
        return []
    queue = worker.torun
    # The first is xdist's name for it from 3.6 on.
    waiting: Any = queue._items if hasattr(queue, "_items") else queue.queue  # noqa: SLF001 - xdist's public API names only one item ahead
    return [index for index in tuple(waiting) if isinstance(index, int)]
