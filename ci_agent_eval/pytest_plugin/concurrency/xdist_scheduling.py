"""How xdist hands items to workers that run several at once: enough that none of them idles."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScheduling  # type: ignore[import-untyped]  # it bears no py.typed

QUEUED = 2
"""How many times its concurrency a worker has at hand: those at work, and those that follow."""


def make_scheduler(config: pytest.Config, log: Any, concurrency: int) -> Any:
    """Return xdist's own `load` scheduling with more at hand; None where it is to be another."""
    is_load = config.getoption("dist", default="no") == "load"
    if not is_load or config.getoption("maxschedchunk", default=None) is not None:
        return None
    return ConcurrentScheduling(config, log, concurrency)


class ConcurrentScheduling(LoadScheduling):  # type: ignore[misc]  # as above
    """Keeps every worker's queue at `QUEUED` times its concurrency, as long as there is any."""

    def __init__(self, config: pytest.Config, log: Any, concurrency: int) -> None:
        super().__init__(config, log)
        self._least = QUEUED * concurrency

    def schedule(self) -> None:
        """Hand out the first items, and then as many as a worker can begin."""
        super().schedule()
        for node in self.nodes:
            self.check_schedule(node)

    def check_schedule(self, node: Any, duration: float = 0) -> None:
        """Fill a worker's queue up; the last items are shared out evenly."""
        missing = self._least - len(self.node2pending[node])
        if not self.pending or missing <= 0 or node.shutting_down or self.collection is None:
            super().check_schedule(node, duration)
            return
        share = -(-len(self.pending) // len(self.node2pending))
        self._send_tests(node, min(missing, share))
