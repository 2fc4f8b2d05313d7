"""Latency statistics against their definition, and the violations that follow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.measurement import (
    compute_latency_statistic,
    convert_to_ms,
    find_budget_violations,
    measure_budgets,
)
from ci_agent_eval.contract.trajectory import Trajectory
from tests.tables import each_row


@each_row(
    ("statistic", "expected"),
    [
        ("p50", 10),
        ("p90", 18),
        ("p95", 19),
        ("p99", 20),
        ("max", 20),
        ("mean", 10.5),
        ("total", 210),
    ],
)
def test_statistics_of_one_to_twenty(statistic, expected):
    assert compute_latency_statistic(range(20, 0, -1), statistic) == expected


@given(st.lists(st.floats(0, 1e9), min_size=1), st.sampled_from(["p50", "p90", "p95", "p99"]))
def test_a_percentile_is_the_smallest_value_that_covers_its_share(values, statistic):
    share = int(statistic[1:])
    found = compute_latency_statistic(values, statistic)
    assert found in values
    assert sum(v <= found for v in values) * 100 >= share * len(values)
    assert sum(v < found for v in values) * 100 < share * len(values)


def test_a_custom_budget_of_the_same_name_does_not_keep_ours_from_being_measured():
    budgets = Budgets.model_validate({"max_turns": 3, "custom": {"max_turns": {"limit": 9}}})
    spoken = Trajectory.model_validate({"turns": [{"role": "assistant", "content": "hi"}]})
    assert [
        (name, budget.used) for name, budget in measure_budgets(budgets, spoken).iter_named()
    ] == [("max_turns", 1), ("max_turns", None)]


def latencies(*values):
    turns = [{"role": "assistant", "content": "hi", "latency_ms": value} for value in values]
    return Trajectory.model_validate({"turns": turns})


def violate(limit, *values, **budget):
    spoken = latencies(*values)
    budgets = Budgets.model_validate({"latency_ms": {"p95": None, "limit": limit, **budget}})
    return find_budget_violations(measure_budgets(budgets, spoken), spoken)


@each_row(
    ("count", "measure"),
    [(1, "only turn"), (7, "largest of 7 turns"), (19, "largest of 19 turns"), (20, "p95")],
)
def test_a_percentile_of_few_turns_is_called_their_largest(count, measure):
    (violation,) = violate(5, *[10] * count)
    assert (violation.measure, violation.turns) == (measure, count)


@each_row("most", [1, 7, 16, 28, 40, 53])
def test_the_turns_above_a_limit_that_chance_explains(most):
    """2 of at most 7 turns, 3 of 16, 4 of 28, 5 of 40, 6 of 53 are too many for a p95."""
    for count in (most, most + 1):
        needed = next(k for k in range(1, count + 2) if stats.binom.sf(k - 1, count, 0.05) <= 0.05)
        over = [violate(5, *[9] * k, *[5] * (count - k), only_if_significant=True)
                for k in range(count + 1)]  # fmt: skip
        assert [bool(found) for found in over] == [k >= needed for k in range(count + 1)]


def test_a_producer_s_larger_figure_is_exceeded_whatever_chance_explains():
    spoken = latencies(9, 1, 1, 1, 1, 1, 1)
    for used, count in ((9, 0), (10, 1)):
        budget = {"p95": used, "limit": 5, "only_if_significant": True}
        budgets = Budgets.model_validate({"latency_ms": budget})
        assert len(find_budget_violations(budgets, spoken)) == count


@each_row("statistic", ["max", "mean", "total"])
def test_only_a_percentile_can_be_significant(statistic):
    budget = {statistic: None, "limit": 5, "only_if_significant": True}
    with pytest.raises(ValidationError, match=r"only_if_significant is for a percentile \(p50, "):
        Budgets.model_validate({"latency_ms": budget})


@each_row(
    ("seconds", "expected"), [(0.0, 0.0), (1.2345678, 1234.568), (-0.5, 0.0), (90.0, 90_000.0)]
)
def test_elapsed_seconds_become_milliseconds_and_never_negative(seconds, expected):
    assert convert_to_ms(seconds) == expected


USAGE = {"input": 3, "output": 2}


@each_row(
    ("usages", "total"), [([], None), ([USAGE, USAGE], 10), ([USAGE, None], None), ([None], None)]
)
def test_tokens_are_known_only_if_every_agent_turn_was_measured(usages, total):
    said = [{"role": "assistant", "content": "hi", "tokens": usage} for usage in usages]
    asked = {"role": "user", "content": "hello"}
    assert Trajectory.model_validate({"turns": [asked, *said]}).total_tokens == total
