"""The statistics of a comparison, held against published tables and against SciPy."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci_agent_eval.analysis.comparison import arrays, statistics
from ci_agent_eval.errors import InputError

counts = st.tuples(st.integers(1, 40), st.integers(1, 40)).flatmap(
    lambda ns: st.tuples(
        st.integers(0, ns[0]), st.just(ns[0]), st.integers(0, ns[1]), st.just(ns[1])
    )
)


def test_fisher_s_tea_drinker():
    # Fisher, The Design of Experiments (1935), section 7: 3 of 4 cups right, p = 17/70.
    assert statistics.compute_drop_p_value(3, 4, 1, 4) == pytest.approx(17 / 70, rel=1e-9)


@given(counts)
def test_a_drop_is_the_tail_of_the_hypergeometric_distribution(given_counts):
    passed_before, before, passed_after, after = given_counts
    passed = passed_before + passed_after
    ways = sum(
        math.comb(passed, k) * math.comb(before + after - passed, after - k)
        for k in range(passed_after + 1)
        if after - k <= before + after - passed
    )
    expected = ways / math.comb(before + after, after)
    assert statistics.compute_drop_p_value(*given_counts) == pytest.approx(
        min(expected, 1), rel=1e-9
    )


def test_benjamini_and_hochberg_s_own_example():
    # Their table 1: of these fifteen p-values four are significant at 0.05.
    p_values = (
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
        0.7590,
        1.0,
    )
    assert sum(p < 0.05 for p in statistics.adjust_p_values(p_values)) == 4


def test_nothing_to_adjust():
    assert statistics.adjust_p_values(()) == ()


@pytest.mark.parametrize(
    ("lost", "won", "expected"), [(0, 0, 1.0), (5, 0, 1 / 32), (4, 1, 6 / 32), (0, 3, 1.0)]
)
def test_the_sign_test_counts_coins(lost, won, expected):
    assert statistics.compute_losses_p_value(lost, won) == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_adjusting_agrees_with_scipy(p_values):
    expected = stats.false_discovery_control(p_values)
    assert statistics.adjust_p_values(p_values) == pytest.approx(tuple(expected), rel=1e-9)


@given(counts)
def test_a_drop_agrees_with_scipy(given_counts):
    passed_before, before, passed_after, after = given_counts
    table = [[passed_after, after - passed_after], [passed_before, before - passed_before]]
    expected = stats.fisher_exact(table, alternative="less").pvalue
    assert statistics.compute_drop_p_value(*given_counts) == pytest.approx(expected, rel=1e-9)


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_sign_test_agrees_with_scipy(lost, won):
    expected = 1.0
    if lost + won:
        expected = stats.binomtest(lost, lost + won, alternative="greater").pvalue
    assert statistics.compute_losses_p_value(lost, won) == pytest.approx(expected, rel=1e-9)


def test_thousands_of_iterations_are_no_matter():
    expected = stats.hypergeom.logcdf(900, 23000, 9900, 3000)
    found = math.log(statistics.compute_drop_p_value(9000, 20000, 900, 3000))
    assert found == pytest.approx(expected, rel=1e-9)


def test_without_numpy_a_comparison_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(InputError, match=r"pip install 'ci-agent-eval\[compare\]'"):
        arrays.import_numpy()
