from __future__ import annotations

import pytest

from ci_agent_eval.github.api_errors import OutOfPatienceError
from ci_agent_eval.github.retries import (
    WaitBudget,
    compute_retry_pause,
    may_retry,
)
from tests.tables import each_row

NOW = 1_767_229_200.0


@each_row(
    ("method", "status", "again"),
    [
        ("GET", 500, True),
        ("GET", 403, True),
        ("GET", 429, True),
        ("GET", 404, False),
        ("POST", 403, True),
        ("POST", 429, True),
        ("PATCH", 429, True),
        ("POST", 500, False),
        ("POST", 502, False),
        ("PATCH", 503, False),
        ("PATCH", 422, False),
    ],
)
def test_only_what_was_certainly_not_done_is_sent_again(method: str, status: int, again: bool):
    assert may_retry(method, status) == again


@each_row(
    ("status", "headers", "failures", "seconds"),
    [
        (403, {"retry-after": "7"}, 1, 7),
        (403, {"retry-after": " 7 "}, 3, 7),
        (503, {"retry-after": "7"}, 1, 7),
        (429, {"retry-after": "Thu, 01 Jan 2026 01:00:30 GMT"}, 1, 30),
        (429, {"retry-after": "Thu, 01 Jan 2026 00:00:00 GMT"}, 1, 0),
        (429, {"retry-after": "soon"}, 1, 60),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1767229210"}, 1, 11),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}, 1, 1),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "later"}, 1, 60),
        (403, {"x-ratelimit-remaining": "8", "x-ratelimit-reset": "1767229210"}, 1, 60),
        (429, {}, 1, 60),
        (429, {}, 2, 120),
        (500, {}, 1, 1),
        (500, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1767229210"}, 3, 4),
        (None, {}, 2, 2),
    ],
)
def test_the_pause_follows_githubs_order(
    status: int | None, headers: dict[str, str], failures: int, seconds: float
):
    assert compute_retry_pause(status, headers, failures=failures, now=NOW) == seconds


def test_patience_is_shared_bounded_and_said():
    naps: list[float] = []
    said: list[str] = []
    patience = WaitBudget(100, naps.append, lambda _level, text: said.append(text))

    patience.wait(60, "GitHub is busy")
    with pytest.raises(OutOfPatienceError, match=r"41 s of waiting.*100 s in all.*waited 60 s"):
        patience.wait(41, "GitHub is busy")
    patience.wait(40, "GitHub is busy")

    assert naps == [60, 40]
    assert said == [f"GitHub is busy: waiting {n} s, then trying again." for n in (60, 40)]
