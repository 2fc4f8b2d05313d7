"""Every kind of figure has one format, and none of them lies by rounding."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.render import numbers
from tests.tables import each_row


@each_row(
    ("shown", "expected"),
    [
        (numbers.format_count(0), "0"),
        (numbers.format_count(1234567), "1,234,567"),
        (numbers.format_count(10**30), "1e+30"),
        (numbers.format_count(10**400), "over 1e+300"),
        (numbers.count_noun(1, "episode"), "1 episode"),
        (numbers.count_noun(0, "episode"), "0 episodes"),
        (numbers.count_noun(2, "entry", "entries"), "2 entries"),
        (numbers.format_percent(1), "100.0 %"),
        (numbers.format_percent(0.9997), "99.9 %"),
        (numbers.format_percent(0.9333), "93.3 %"),
        (numbers.format_percent(0.0002), "0.1 %"),
        (numbers.format_percent(0), "0.0 %"),
        (numbers.format_percent_within(0.9333, (0.8407, 0.9738)), "93.3 % (84.1–97.4)"),
        (numbers.format_percent_within(1, (0.0004, 0.9999)), "100.0 % (0.1–99.9)"),
        (numbers.format_percent_within(0.5, None), "50.0 %"),
        (numbers.format_money(0), "$0.00"),
        (numbers.format_money(0.0041), "$0.0041"),
        (numbers.format_money(0.01), "$0.01"),
        (numbers.format_money(0.5), "$0.50"),
        (numbers.format_money(0.999), "$1.00"),
        (numbers.format_money(12.3), "$12.30"),
        (numbers.format_money(1234567.891), "$1,234,567.89"),
        (numbers.format_money(4e-7), "$0.0000004"),
        (numbers.format_money(1e-12), "under $0.00000001"),
        (numbers.format_milliseconds(0), "0 ms"),
        (numbers.format_milliseconds(4.24), "4.2 ms"),
        (numbers.format_milliseconds(1380.2), "1,380 ms"),
        (numbers.format_milliseconds(132_500), "132.5 s"),
        (numbers.format_seconds(12.34), "12.3 s"),
        (numbers.format_seconds(312), "5 min 12 s"),
        (numbers.format_amount(4), "4"),
        (numbers.format_amount(4.5), "4.5"),
        (numbers.format_amount(1000), "1,000"),
        (numbers.format_change(100, 111, (-0.02, 0.24)), "+11 % (−2 to +24)"),
        (numbers.format_change(100, 900, None), "+800 %"),
        (numbers.format_change(1, 1000, None), "×1,000"),
        (numbers.format_change(1, 12, (8.0, 14.0)), "×12 (9 to 15)"),
        (numbers.format_change(0, 5, None), "from 0"),
        (numbers.format_rise(0.042), "by 4.2 %"),
        (numbers.format_rise(11), "to ×12"),
        (numbers.format_allowed(0.075), "7.5 % allowed"),
        (numbers.format_score(1), "1.00"),
        (numbers.format_score(0.999999), "0.99"),
        (numbers.format_score(0.857143), "0.86"),
        (numbers.format_score(0.000001), "0.01"),
        (numbers.format_score(0), "0.00"),
        (numbers.format_required_score(0.8), "0.8"),
        (numbers.format_required_score(0.755), "0.755"),
        (numbers.format_score_below(0.75, 0.755), "0.75"),
        (numbers.format_score_below(0.754999, 0.755), "0.75"),
        (numbers.format_score_below(0.799999, 0.8), "0.799999"),
    ],
)
def test_format(shown, expected):
    assert shown == expected


@given(st.floats(0, 1))
def test_only_all_is_all_and_only_nothing_is_nothing(share):
    assert (numbers.format_percent(share) == "100.0 %") is (share == 1)
    assert (numbers.format_percent(share) == "0.0 %") is (share == 0)


WRITERS = [
    numbers.format_money,
    numbers.format_milliseconds,
    numbers.format_seconds,
    numbers.format_amount,
]
FIGURES = st.floats(0, allow_infinity=False, allow_nan=False)


@given(st.sampled_from(WRITERS), FIGURES, FIGURES)
def test_limit_and_observed_never_look_the_same(write, limit, observed):
    shown = numbers.format_distinct(write, limit, observed, 1)
    assert (shown[0] == shown[1]) is (limit == observed)


def test_figures_just_over_their_limit_look_over_it():
    assert numbers.format_distinct(numbers.format_money, 0.01, 0.0101, 2) == ("$0.01", "$0.0101")
    assert numbers.format_distinct(numbers.format_milliseconds, 1250, 1250.25, 1) == (
        "1,250 ms",
        "1,250.2 ms",
    )
    assert numbers.format_distinct(numbers.format_amount, 1.0, math.nextafter(1, 2), 2) == (
        "1.0",
        "1.0000000000000002",
    )
