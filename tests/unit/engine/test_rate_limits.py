from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.engine.rate_limits import MINUTE_S, RateWindow, RateWindows


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
