"""The statistics of a comparison, held against published tables and against SciPy."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci_agent_eval.analysis.comparison import arrays, statistics
from ci_agent_eval.errors import InputError


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


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_adjusting_agrees_with_scipy(p_values):
    expected = stats.false_discovery_control(p_values)
    assert statistics.adjust_p_values(p_values) == pytest.approx(tuple(expected), rel=1e-9)


def test_without_numpy_a_comparison_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(InputError, match=r"pip install 'ci-agent-eval\[compare\]'"):
        arrays.import_numpy()
