"""How often an unchanged suite fails, against SciPy and published figures."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci_agent_eval.analysis.false_alarms import compute_any_chance, compute_shortfall_chance


@pytest.mark.parametrize(
    ("scenarios", "iterations", "required", "percent"),
    [(10, 1, 1, 40), (50, 1, 1, 92), (200, 1, 1, 100), (50, 3, 0.66, 31), (50, 5, 0.8, 68),
     (50, 5, 0.6, 5.6), (50, 10, 0.8, 44), (50, 20, 0.8, 12)],
)  # fmt: skip
def test_suites_that_pass_95_percent_of_the_time(scenarios, iterations, required, percent):
    alone = compute_shortfall_chance(iterations, 0.95, required)
    assert 100 * compute_any_chance([alone] * scenarios) == pytest.approx(percent, abs=0.6)


@given(
    st.integers(1, 400),
    st.floats(0, 1),
    st.decimals(0, 1, places=2),
)
def test_shortfalls_are_binomial(iterations, rate, required):
    found = compute_shortfall_chance(iterations, rate, float(required))
    least = math.ceil(required * iterations)
    assert found == pytest.approx(stats.binom.cdf(least - 1, iterations, rate), abs=1e-9)
