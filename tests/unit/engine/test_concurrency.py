from __future__ import annotations

from ci_agent_eval.engine.rate_limits import Concurrency


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
