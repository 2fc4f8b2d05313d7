"""pass@k and pass^k, held against every way of drawing k of n."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.reliability import (
    Reliability,
    estimate_reliability,
    pass_at_k,
    pass_hat_k,
)
from tests.tables import each_row

counts = st.integers(1, 9).flatmap(
    lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n))
)


@given(counts)
def test_they_are_the_shares_of_all_draws(given_counts):
    passed, judged, k = given_counts
    draws = list(combinations([True] * passed + [False] * (judged - passed), k))
    assert pass_at_k(passed, judged, k) == pytest.approx(
        sum(map(any, draws)) / len(draws), abs=1e-12
    )
    assert pass_hat_k(passed, judged, k) == pytest.approx(
        sum(map(all, draws)) / len(draws), abs=1e-12
    )


def test_many_iterations_are_no_overflow():
    # Chen et al. warn of computing the binomials in floats: C(200, 100) and more.
    assert pass_at_k(3, 2000, 100) == pytest.approx(1 - 1900 * 1899 * 1898 / (2000 * 1999 * 1998))


def test_what_is_told():
    assert estimate_reliability(4, 5) == (
        Reliability(2, 1.0, 0.6),
        Reliability(3, 1.0, 0.4),
        Reliability(5, 1.0, 0.0),
    )
    assert estimate_reliability(1, 1) == ()


@each_row(("passed", "judged", "k"), [(3, 2, 1), (-1, 2, 1), (1, 2, 3), (1, 2, 0)])
def test_counts_that_cannot_be(passed, judged, k):
    for estimate in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="tell nothing"):
            estimate(passed, judged, k)
