"""How many iterations are enough, held against the power of each number of them."""

from __future__ import annotations

import pytest

from ci_agent_eval.analysis.comparison.regressions import find_needed_iterations


@pytest.mark.parametrize("counts", [(20, 20, 19, 20), (3, 3, 2, 5)])
def test_no_number_is_enough_where_the_baseline_has_too_few(counts):
    assert find_needed_iterations(*counts, 0.05) is None


def test_more_than_were_run_are_needed():
    assert find_needed_iterations(1000, 1000, 5, 10, 0.05) > 10
