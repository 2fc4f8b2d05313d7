"""Agreements: what they cover, until when, and what a wrong one is told."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from pydantic import ValidationError

from ci_agent_eval.analysis.waivers import evaluate_waivers, find_waiver
from ci_agent_eval.contract.scenario_manifest import QuarantineEntry
from tests.builders import agreement
from tests.tables import each_row

DAY = dt.date(2026, 1, 31)


def entry(**overrides):
    fields = {"scenario": "refund", "owner": "payments", "reason": "flaky", "until": "2026-01-31"}
    return QuarantineEntry.model_validate({**fields, **overrides})


@each_row("days", [-400, -1, 0])
def test_the_last_day_is_part_of_it(days):
    (one,) = evaluate_waivers([entry()], DAY + dt.timedelta(days))
    assert not one.expired


@each_row("days", [1, 2, 400])
def test_after_the_last_day_it_is_over(days):
    (one,) = evaluate_waivers([entry()], DAY + dt.timedelta(days))
    assert one.expired


@each_row(
    ("pattern", "name", "covered"),
    [
        ("refund", "refund", True),
        ("refund", "refund_big", False),
        ("refund*", "refund_big", True),
        ("Refund", "refund", False),
        ("test_x.py::test_refund[3]", "test_x.py::test_refund[3]", True),
        ("test_x.py::test_refund[3]", "test_x.py::test_refund3", True),
        ("test_x.py::*", "test_x.py::test_refund[3]", True),
        ("*", "a/b\nc", True),
    ],
)
def test_a_scenario_is_meant_by_its_id_or_by_a_glob(pattern, name, covered):
    assert agreement(pattern).covers(name, None) is covered


@each_row(
    ("agent", "of", "covered"),
    [(None, "gpt", True), (None, None, True), ("gpt", "gpt", True), ("gpt", None, False),
     ("gpt*", "gpt-5", True), ("gpt", "claude", False)],
)  # fmt: skip
def test_an_agent_narrows_it(agent, of, covered):
    assert agreement(agent=agent).covers("refund", of) is covered


def test_of_several_the_one_that_holds_longest_counts():
    short, long = agreement(until=DAY, expired=True), agreement("ref*", until=dt.date(2027, 1, 1))
    assert find_waiver([long, short], "refund", None) == long
    assert find_waiver([short, long], "refund", None) == long
    assert find_waiver([short, long], "other", None) is None


@each_row(
    ("fields", "said"),
    [
        ({"until": "31.01.2026"}, 'must be a date written as "YYYY-MM-DD"'),
        ({"until": "2026-02-30"}, "2026-02-30 is not a day of the calendar"),
        ({"until": "2026-1-3"}, 'must be a date written as "YYYY-MM-DD"'),
        ({"until": 20260131}, 'must be a date written as "YYYY-MM-DD"'),
        (
            {"until": dt.datetime(2026, 1, 31, tzinfo=dt.UTC)},
            'must be a date written as "YYYY-MM-DD"',
        ),
        ({"owner": ""}, "at least 1 character"),
        ({"reason": "  "}, "should match pattern"),
        ({"scenrio": "x"}, "unknown key 'scenrio'; did you mean 'scenario'?"),
    ],
)
def test_a_wrong_entry_is_told(fields, said):
    with pytest.raises(ValidationError, match=re.escape(said)):
        entry(**fields)
