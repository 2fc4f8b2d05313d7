"""The distributions of the tests, held against SciPy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from ci_agent_eval.analysis import distributions

shapes = st.floats(0.05, 500)


@given(
    st.integers(0, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), shapes, shapes
)
def test_beta_binomial(counts, alpha, beta):
    passed, total = counts
    expected = stats.betabinom.cdf(passed, total, alpha, beta)
    found = distributions.compute_beta_binomial_cdf(passed, total, alpha, beta)
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-11)


@given(st.floats(-50, 50), st.floats(0.5, 1e6))
def test_student_s_t(value, degrees):
    expected = stats.t.cdf(value, degrees)
    assert distributions.compute_t_cdf(value, degrees) == pytest.approx(
        expected, rel=1e-6, abs=1e-9
    )


@given(st.floats(0.501, 0.999), st.floats(0.5, 1e5))
def test_quantiles_of_student_s_t(share, degrees):
    expected = stats.t.ppf(share, degrees)
    assert distributions.compute_t_quantile(share, degrees) == pytest.approx(expected, rel=1e-6)


@given(st.floats(0, 1), shapes, shapes)
def test_the_incomplete_beta_function(x, a, b):
    expected = special.betainc(a, b, x)
    found = distributions.compute_regularized_beta(x, a, b)
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-11)
