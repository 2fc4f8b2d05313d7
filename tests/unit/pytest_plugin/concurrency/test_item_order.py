"""What comes after the item whose turn it is in an xdist worker, whose queue is private."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

from ci_agent_eval.pytest_plugin.concurrency.eligibility import ItemOrder
from tests.tables import each_row


@each_row(
    ("queue", "dist", "upcoming"),
    [
        (SimpleNamespace(_items=deque([2, 3, None])), "load", "bcd"),
        (SimpleNamespace(queue=deque([2, 3, object()])), "load", "bcd"),
        (SimpleNamespace(_items=deque([2, 3])), "worksteal", "b"),  # others may steal them
    ],
)
def test_a_worker_runs_what_is_in_its_queue(queue, dist, upcoming):
    options = SimpleNamespace(getoption=lambda name, default=None: dist)
    worker = SimpleNamespace(torun=queue, config=options)
    plugins = SimpleNamespace(get_plugins=lambda: [object(), worker])
    config = SimpleNamespace(pluginmanager=plugins, workerinput={})
    made = ItemOrder(SimpleNamespace(items=list("abcdef"), config=config))
    made.set_current("a", "b")
    assert "".join(made.iter_upcoming(0)) == upcoming
    assert "".join(made.iter_upcoming(1)) == upcoming[1:]
    made.set_current("a", None)
    assert list(made.iter_upcoming(0)) == []
