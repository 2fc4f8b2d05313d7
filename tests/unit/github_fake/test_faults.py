"""Faults that the fake is told to have."""

import http.client

import pytest

from tests.unit.github_fake.rig import COMMENTS, REPO, raw


@pytest.mark.parametrize(
    ("kind", "status", "header", "done"),
    [
        ("forbidden_retry_after", 403, ("Retry-After", "5"), 0),
        ("too_many_no_retry_after", 429, ("Retry-After", None), 0),
        ("rate_limited_reset", 403, ("x-ratelimit-remaining", "0"), 0),
        ("rate_limited_reset", 403, ("x-ratelimit-reset", "99"), 0),
        ("server_error", 500, ("x-ratelimit-remaining", "4999"), 0),
        ("bad_gateway_after_work", 502, ("x-ratelimit-remaining", "4999"), 1),
        ("read_only", 403, ("Retry-After", None), 0),
        ("unprocessable", 422, ("Retry-After", None), 0),
    ],
)
def test_a_fault_answers_once_and_then_the_request_is_served(fake, kind, status, header, done):
    fake.faults.add(kind, on="POST */comments", retry_after=5, reset_at=99)
    assert raw(fake, "GET", COMMENTS)[0] == 200
    got, _, headers = raw(fake, "POST", COMMENTS, {"body": "x"})
    assert (got, headers[header[0]]) == (status, header[1])
    assert len(fake.comments(REPO, 7)) == done
    assert raw(fake, "POST", COMMENTS, {"body": "x"})[0] == 201
    assert [(r.status, r.fault, r.worked) for r in fake.writes] == [
        (status, kind, bool(done)),
        (201, None, True),
    ]
    assert fake.violations == []


@pytest.mark.parametrize(("kind", "done"), [("cut_before", 0), ("cut_after", 1)])
def test_a_cut_connection_says_nothing(fake, kind, done):
    fake.faults.add(kind)
    with pytest.raises(http.client.RemoteDisconnected):
        raw(fake, "POST", COMMENTS, {"body": "x"})
    assert len(fake.comments(REPO, 7)) == done
    assert [(r.method, r.status, r.fault, r.worked) for r in fake.requests] == [
        ("POST", None, kind, bool(done))
    ]
    assert fake.requests[0].body == {"body": "x"}


def test_a_fault_strikes_the_nth_match_as_often_as_it_says(fake):
    fault = fake.faults.add("server_error", on="GET *", nth=2, times=2)
    forever = fake.faults.add("read_only", on="POST *", times=None)
    reads = [raw(fake, "GET", COMMENTS)[0] for _ in range(4)]
    writes = [raw(fake, "POST", COMMENTS, {"body": "x"})[0] for _ in range(3)]
    assert (reads, writes) == ([200, 500, 500, 200], [403, 403, 403])
    assert (fault.seen, forever.seen) == (4, 3)
    fake.faults.clear()
    assert raw(fake, "POST", COMMENTS, {"body": "x"})[0] == 201
    with pytest.raises(ValueError, match="unknown fault 'flood'"):
        fake.faults.add("flood")
