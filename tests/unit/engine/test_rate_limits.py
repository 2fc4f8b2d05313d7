from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.engine.rate_limits import MINUTE_S, Concurrency, RateWindow, RateWindows


def test_what_is_beyond_the_limit_waits_for_an_empty_window():
    window = RateWindow(100)
    assert window.wait_s(0, 500) == 0
    window.add(0, 500)
    assert window.wait_s(1, 500) == 59
    assert window.wait_s(60, 500) == 0


def test_a_shorter_pause_does_not_end_a_longer_one():
    windows = RateWindows(lambda: 1000.0)
    windows.pause(30)
    windows.pause(20)
    assert windows.take(0) == 30


@given(
    limit=st.integers(1, 20),
    gaps=st.lists(st.floats(0, 30), min_size=1, max_size=60),
    amounts=st.lists(st.integers(1, 5), min_size=60, max_size=60),
)
def test_no_minute_ever_holds_more_than_the_limit(limit, gaps, amounts):
    window, now, taken = RateWindow(limit), 0.0, []
    for gap, amount in zip(gaps, amounts, strict=False):
        now += gap
        while wait := window.wait_s(now, amount):
            now += wait + 1e-6
        window.add(now, amount)
        taken.append((now, amount))
        minute = [size for at, size in taken if now - MINUTE_S < at]
        assert sum(minute) <= limit or len(minute) == 1


def test_concurrency_halves_and_grows_one_by_one():
    allowed = Concurrency()
    assert allowed.has_capacity(255)
    allowed.shrink(now=10, started=5, open_requests=8)
    assert not allowed.has_capacity(4)
    assert allowed.has_capacity(3)
    for _ in range(4):
        allowed.grow()
    assert allowed.has_capacity(4) is (allowed.allowed >= 5)
    allowed.grow()
    assert allowed.has_capacity(4)


def test_one_burst_of_refusals_halves_once():
    allowed = Concurrency()
    for _ in range(5):
        allowed.shrink(now=10, started=9, open_requests=8)
    assert allowed.allowed == 4
    allowed.shrink(now=12, started=11, open_requests=4)
    assert allowed.allowed == 2


def test_one_request_is_always_allowed_and_growth_ends_at_the_ceiling():
    allowed = Concurrency(ceiling=3, allowed=3)
    for now in range(10):
        allowed.shrink(now=now, started=now, open_requests=1)
    assert allowed.has_capacity(0)
    for _ in range(100):
        allowed.grow()
    assert allowed.allowed == 3
