"""Wilson's interval against published values, and what is true of it for any counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.reliability import compute_wilson_interval
from tests.tables import each_row

COUNTS = st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
LEVELS = st.floats(0.01, 0.999)


@each_row(
    ("passed", "judged", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_published_values(passed, judged, low, high):
    assert compute_wilson_interval(passed, judged) == (
        pytest.approx(low, abs=5e-5),
        pytest.approx(high, abs=5e-5),
    )


def test_nothing_judged_says_nothing():
    assert compute_wilson_interval(0, 0) == (0.0, 1.0)


@given(COUNTS, LEVELS)
def test_it_holds_the_share_and_lies_within_0_and_1(counts, level):
    passed, judged = counts
    low, high = compute_wilson_interval(passed, judged, level)
    assert 0 <= low <= passed / judged <= high <= 1
    assert (low == 0) == (passed == 0)
    assert (high == 1) == (passed == judged)


@each_row("counts", [(-1, 3), (4, 3), (0, -1)])
def test_counts_that_cannot_be_are_refused(counts):
    with pytest.raises(ValueError, match="cannot have passed"):
        compute_wilson_interval(*counts)


@each_row("level", [0, 1, -0.5, 95])
def test_a_level_is_a_share(level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        compute_wilson_interval(1, 2, level)
