"""Doing the same to many things at once: the same results in the same order, whatever happens."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from ci_agent_eval.results.baselines.runs import count_processors, map_parallel

forks = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only")


def identified(number):
    return number, os.getpid()


def failing_elsewhere(parent):
    def work(number):
        if os.getpid() != parent:
            raise ValueError(number)
        return number

    return work


def killed_elsewhere(parent):
    def work(number):
        if os.getpid() != parent:
            os._exit(9)
        return number

    return work


@forks
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize(("count", "used"), [(0, 0), (2, 1), (3, 3), (10, 3)])
def test_results_come_in_order_from_several_processes(count, used):
    found = map_parallel(identified, range(count), processes=3)
    assert [number for number, _ in found] == list(range(count))
    assert len({process for _, process in found}) == used


@forks
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize("broken", [failing_elsewhere, killed_elsewhere])
def test_what_a_process_does_not_bring_back_is_done_here(broken):
    assert map_parallel(broken(os.getpid()), range(7), processes=3) == list(range(7))


def test_beside_another_thread_nothing_is_forked():
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert count_processors() == 1
    finally:
        done.set()
        thread.join()
