"""The statistics of a comparison, held against published tables and against SciPy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci_agent_eval.analysis import distributions


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_adjusting_agrees_with_scipy(p_values):
    expected = stats.false_discovery_control(p_values)
    assert distributions.adjust_p_values(p_values) == pytest.approx(tuple(expected), rel=1e-9)
