"""The statistics of a comparison, held against published tables and against SciPy."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci_agent_eval.comparison import statistics
from ci_agent_eval.errors import InputError

counts = st.tuples(st.integers(1, 40), st.integers(1, 40)).flatmap(
    lambda ns: st.tuples(
        st.integers(0, ns[0]), st.just(ns[0]), st.integers(0, ns[1]), st.just(ns[1])
    )
)


def test_fisher_s_tea_drinker():
    # Fisher, The Design of Experiments (1935), section 7: 3 of 4 cups right, p = 17/70.
    assert statistics.p_value_of_drop(3, 4, 1, 4) == pytest.approx(17 / 70, rel=1e-9)


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
    assert statistics.p_value_of_drop(*given_counts) == pytest.approx(min(expected, 1), rel=1e-9)


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
    assert sum(p < 0.05 for p in statistics.adjusted(p_values)) == 4


def test_nothing_to_adjust():
    assert statistics.adjusted(()) == ()


@pytest.mark.parametrize(
    ("lost", "won", "expected"), [(0, 0, 1.0), (5, 0, 1 / 32), (4, 1, 6 / 32), (0, 3, 1.0)]
)
def test_the_sign_test_counts_coins(lost, won, expected):
    assert statistics.p_value_of_losses(lost, won) == pytest.approx(expected, rel=1e-9)


def test_the_bootstrap_is_seeded_and_close_to_its_theory():
    before = [1.0 + i / 50 for i in range(50)]
    after = [value * 1.1 + (0.1 if i % 2 else -0.1) for i, value in enumerate(before)]
    low, high = statistics.interval_of_change(before, after)
    assert (low, high) == statistics.interval_of_change(before, after)
    assert low < 0.1 < high
    pairs = [a - 1.1 * b for a, b in zip(after, before, strict=True)]
    width = 2 * 1.96 * stats.sem(pairs) / (sum(before) / len(before))
    assert high - low == pytest.approx(width, rel=0.15)


@pytest.mark.parametrize("before", [[1.0], [0.0, 1.0], []])
def test_no_interval_of_what_cannot_have_one(before):
    assert statistics.interval_of_change(before, before) is None


def test_the_same_change_everywhere_needs_no_resamples():
    assert statistics.interval_of_change([2.0, 2.0], [3.0, 3.0]) == (0.5, 0.5)


@pytest.mark.parametrize("case", [(50, 50, 4, 5), (1, 1, 0, 1), (95, 100, 3, 4)])
def test_how_many_iterations_would_tell(case):
    passed_before, before, passed_after, after = case
    needed = statistics.iterations_to_tell(*case, 0.05)

    def p_value(iterations):
        passed = math.floor(passed_after / after * iterations + 0.5)
        return statistics.p_value_of_drop(passed_before, before, passed, iterations)

    assert p_value(needed) < 0.05 <= p_value(needed - 1)


def test_no_iterations_tell_where_the_baseline_has_too_few():
    assert statistics.iterations_to_tell(20, 20, 19, 20, 0.05) is None


def test_without_scipy_a_comparison_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(InputError, match=r"pip install 'ci-agent-eval\[compare\]'"):
        statistics.p_value_of_losses(1, 0)
