"""Requests in flight together: all at once, their answers in order, and the first failure told."""

from __future__ import annotations

import threading

from ci_agent_eval.github.concurrent_requests import run_concurrently


def test_all_are_under_way_at_once_and_answers_come_in_order():
    meeting = threading.Barrier(4, timeout=120)

    def work(number: int) -> int:
        meeting.wait()
        return number * 10

    assert run_concurrently(work, range(4)) == [0, 10, 20, 30]
