"""Requests in flight together: all at once, their answers in order, and the first failure told."""

from __future__ import annotations

import threading

import pytest

from ci_agent_eval.github.concurrent_requests import run_concurrently
from tests.tables import each_row


def test_all_are_under_way_at_once_and_answers_come_in_order():
    meeting = threading.Barrier(4, timeout=120)

    def work(number: int) -> int:
        meeting.wait()
        return number * 10

    assert run_concurrently(work, range(4)) == [0, 10, 20, 30]


@each_row("bad", [{0, 2}, {1, 3}, {3}])
def test_the_first_failure_is_raised_once_all_have_ended(bad: set[int]):
    ended: set[int] = set()

    def work(number: int) -> None:
        ended.add(number)
        if number in bad:
            raise ValueError(number)

    with pytest.raises(ValueError, match=f"^{min(bad)}$"):
        run_concurrently(work, range(4))
    assert ended == {0, 1, 2, 3}
