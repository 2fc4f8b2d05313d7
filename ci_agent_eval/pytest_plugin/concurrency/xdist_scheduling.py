"""xdist's distribution of items to workers.

The iterations of an adaptive test stay on one worker, and workers that run several episodes at once
get longer queues, so that none is idle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from xdist.scheduler import LoadScheduling  # type: ignore[import-untyped]  # it has no py.typed

from ci_agent_eval.contract.iteration_range import AUTO

QUEUE_FACTOR = 2
"""Length of a worker's queue as a multiple of its concurrency: running items and the next ones."""


def make_scheduler(config: pytest.Config, log: Any, concurrency: int) -> Any:
    """Return xdist's `load` scheduling for episodes; None if another one is selected."""
    if config.getoption("dist", default="no") != "load":
        return None
    if concurrency == 1 or config.getoption("maxschedchunk", default=None) is not None:
        return AdaptiveScheduling(config, log)
    return ConcurrentScheduling(config, log, concurrency)


_ADAPTIVE = re.compile(rf"[\[-]\d+-of-{AUTO}\]$")
"""The end of the node id of an adaptive iteration."""


class AdaptiveScheduling(LoadScheduling):  # type: ignore[misc]  # as above
    """Sends all iterations of an adaptive test to one worker, which decides on them.

    Without adaptive tests it is xdist's own `load` scheduling.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._shares: dict[Any, list[int]] | None = None
        """The adaptive iterations that each worker has still to get."""

    def _send_tests(self, node: Any, num: int) -> None:
        """Send a worker its adaptive iterations at first, and then `num` of the other items."""
        if self._shares is None:
            self._shares = self._split_adaptive_items()
        share = self._shares.pop(node, [])
        self.pending[:0] = share
        super()._send_tests(node, len(share) or num)

    def _split_adaptive_items(self) -> dict[Any, list[int]]:
        """Take the adaptive iterations out of the pending items, by the worker that runs them."""
        collection: Sequence[str] = self.collection
        tests = {index: _ADAPTIVE.sub("", collection[index]) for index in self.pending}
        adaptive = [i for i in self.pending if tests[i] != collection[i]]
        self.pending[:] = [i for i in self.pending if tests[i] == collection[i]]
        places = {
            test: place for place, test in enumerate(dict.fromkeys(tests[i] for i in adaptive))
        }
        shares: dict[Any, list[int]] = {}
        for index in adaptive:
            node = self.nodes[places[tests[index]] % len(self.nodes)]
            shares.setdefault(node, []).append(index)
        return shares


class ConcurrentScheduling(AdaptiveScheduling):
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
