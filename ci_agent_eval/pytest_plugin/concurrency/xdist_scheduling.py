"""xdist's distribution of items to workers that run several at once, so that none is idle."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScheduling  # type: ignore[import-untyped]  # it has no py.typed

QUEUE_FACTOR = 2
"""Length of a worker's queue as a multiple of its concurrency: running items and the next ones."""


def make_scheduler(config: pytest.Config, log: Any, concurrency: int) -> Any:
    """Return xdist's `load` scheduling with longer queues; None if another one is selected."""
    is_load = config.getoption("dist", default="no") == "load"
    if not is_load or config.getoption("maxschedchunk", default=None) is not None:
        return None
    return ConcurrentScheduling(config, log, concurrency)


class ConcurrentScheduling(LoadScheduling):  # type: ignore[misc]  # as above
    """Keeps every worker's queue at `QUEUED` times its concurrency while items remain."""

    def __init__(self, config: pytest.Config, log: Any, concurrency: int) -> None:
        super().__init__(config, log)
        self._least = QUEUE_FACTOR * concurrency

    def schedule(self) -> None:
        """Distribute the first items, then as many as each worker can start."""
        super().schedule()
        for node in self.nodes:
            self.check_schedule(node)

    def check_schedule(self, node: Any, duration: float = 0) -> None:
        """Refill a worker's queue; the last items are distributed evenly."""
        missing = self._least - len(self.node2pending[node])
        if not self.pending or missing <= 0 or node.shutting_down or self.collection is None:
            super().check_schedule(node, duration)
            return
        share = -(-len(self.pending) // len(self.node2pending))
        self._send_tests(node, min(missing, share))
