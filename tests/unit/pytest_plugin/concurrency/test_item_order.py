"""What comes after the item whose turn it is: in pytest's order, or in that of a worker."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin.concurrency.item_order import ItemOrder


class WorkerInteractor:
    """As xdist's: it has a queue, and knows one item ahead."""

    def __init__(self, queue: Any, dist: str) -> None:
        self.torun = queue
        self.config = SimpleNamespace(getoption=lambda name, default=None: dist)


def session(items: str, worker: WorkerInteractor | None = None) -> Any:
    plugins = SimpleNamespace(get_plugins=lambda: [object(), worker] if worker else [object()])
    config = SimpleNamespace(pluginmanager=plugins)
    if worker is not None:
        config.workerinput = {}
    return SimpleNamespace(items=list(items), config=config)


def order(items: str, worker: WorkerInteractor | None = None) -> Any:
    return ItemOrder(session(items, worker))


def test_the_rest_of_the_items_in_their_order():
    made = order("abcd")
    made.set_current("a", "b")
    assert list(made.iter_upcoming(0)) == ["b", "c", "d"]
    assert list(made.iter_upcoming(2)) == ["d"]
    made.set_current("b", "c")
    assert list(made.iter_upcoming(0)) == ["c", "d"]


def test_the_same_item_twice_has_two_places():
    made = order("abab")
    for item, rest in zip("abab", ["bab", "ab", "b", ""], strict=True):
        made.set_current(item, None)
        assert "".join(made.iter_upcoming(0)) == rest


def test_an_item_that_is_run_out_of_turn_is_found():
    made = order("abcd")
    made.set_current("c", None)
    assert list(made.iter_upcoming(0)) == ["d"]


@pytest.mark.parametrize(
    "queue",
    [SimpleNamespace(_items=deque([2, 3, None])), SimpleNamespace(queue=deque([2, 3, object()]))],
)
def test_a_worker_runs_what_is_in_its_queue(queue):
    made = order("abcdef", WorkerInteractor(queue, "load"))
    made.set_current("a", "b")
    assert list(made.iter_upcoming(0)) == ["b", "c", "d"]
    assert list(made.iter_upcoming(1)) == ["c", "d"]
    assert list(made.iter_upcoming(2)) == ["d"]


def test_what_others_may_steal_is_not_begun():
    queue = SimpleNamespace(_items=deque([2, 3]))
    made = order("abcdef", WorkerInteractor(queue, "worksteal"))
    made.set_current("a", "b")
    assert list(made.iter_upcoming(0)) == ["b"]


def test_the_last_item_of_a_worker_is_followed_by_none():
    made = order("abc", WorkerInteractor(SimpleNamespace(_items=deque([2])), "load"))
    made.set_current("a", None)
    assert list(made.iter_upcoming(0)) == []
