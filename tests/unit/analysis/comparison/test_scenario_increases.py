"""Scenarios whose cost or latency rose: what is certain, and what gates."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from ci_agent_eval.analysis.comparison.log_means import collect_measurements
from ci_agent_eval.analysis.comparison.model import AllowedIncreases, ScenarioComparison
from ci_agent_eval.analysis.comparison.pool import IterationPool, RunValues
from ci_agent_eval.analysis.comparison.regressions import add_decreases, list_increase_tests
from ci_agent_eval.analysis.loaded_results import OutcomeTally


def pool(*runs):
    values = tuple(RunValues(n, tuple((v,) for v in run)) for n, run in enumerate(runs))
    return IterationPool(OutcomeTally(), {"cost_usd": values})


def suite(scenarios, *, iterations=5, runs=1, shift=0.0, factors=()):
    draw, factors = random.Random(1), dict(factors)

    def run(factor=1.0):
        moved = factor * draw.lognormvariate(0, shift)
        return [moved * draw.lognormvariate(0, 0.2) for _ in range(iterations)]

    return {
        (f"s{n}", ""): (pool(*(run() for _ in range(runs))), pool(run(factors.get(n, 1.0))))
        for n in range(scenarios)
    }


def find_certain(pools, allowed=None, level=0.025):
    tests = list_increase_tests(
        collect_measurements(pools), AllowedIncreases(scenario_cost=allowed)
    )
    return {test.key[0] for test in tests if test.found.p_value < level}


def test_a_scenario_that_stands_out_is_named_with_both_geometric_means():
    pools = suite(20, factors=[(3, 5.0)])
    assert find_certain(pools) == {"s3"}
    (found,) = (
        t.found
        for t in list_increase_tests(collect_measurements(pools), AllowedIncreases())
        if t.key[0] == "s3"
    )
    before, after = (pools["s3", ""][side].values["cost_usd"][0].iterations for side in (0, 1))
    means = (stats.gmean([v for (v,) in before]), stats.gmean([v for (v,) in after]))
    assert (found.before, found.after) == pytest.approx(means, rel=1e-6)
    assert found.allowed is None


def test_a_suite_that_rises_as_a_whole_names_no_scenario():
    assert find_certain(suite(20, factors=[(n, 5.0) for n in range(20)])) == set()


def test_against_a_limit_every_scenario_counts():
    pools = suite(20, factors=[(n, 5.0) for n in range(20)])
    assert len(find_certain(pools, 0.5)) == 20
    assert find_certain(pools, 9.0) == set()


def test_one_scenario_alone_is_tested_by_its_own_iterations_and_an_assumed_day():
    before, after = [1.0, 1.2, 0.9, 1.1], [2.0, 2.3, 1.7]
    pools = {("a", ""): (pool(before), pool(after))}
    (test,) = list_increase_tests(collect_measurements(pools), AllowedIncreases(scenario_cost=0.2))
    logs = [[math.log(v) for v in side] for side in (before, after)]
    squares = sum(stats.tvar(side) * (len(side) - 1) for side in logs) / 5
    own, day = squares * (1 / 4 + 1 / 3), 2 * 0.05**2
    degrees = (own + day) ** 2 / (own**2 / 5 + day**2 / 4)
    rise = stats.tmean(logs[1]) - stats.tmean(logs[0]) - math.log(1.2)
    expected = stats.t.sf(rise / math.sqrt(own + day), degrees)
    assert test.found.p_value == pytest.approx(expected, rel=1e-6)


def find_fallen(pools, level=0.025):
    scenarios = [ScenarioComparison(name, None, "unchanged", True) for name, _ in pools]
    found = add_decreases(scenarios, collect_measurements(pools), level)
    return {one.scenario_id: one.decreases for one in found if one.decreases}


def test_a_scenario_that_fell_beyond_the_suite_is_named_with_both_means():
    pools = suite(20, factors=[(3, 0.2)])
    ((name, (found,)),) = find_fallen(pools).items()
    assert (name, found.metric) == ("s3", "cost_usd")
    assert found.after / found.before == pytest.approx(0.2, rel=0.3)
    assert found.p_value < 0.025
    assert find_certain(pools) == set()


def test_a_suite_that_falls_as_a_whole_or_by_chance_names_no_scenario():
    assert find_fallen(suite(20, factors=[(n, 0.2) for n in range(20)])) == {}
    assert find_fallen(suite(20)) == {}
    assert find_fallen(suite(20, factors=[(3, 5.0)])) == {}
    assert find_fallen({}) == {}


def test_tokens_count_where_the_cost_is_unknown():
    priced = suite(20, factors=[(3, 5.0)])
    tokens = {
        key: tuple(
            IterationPool(OutcomeTally(), {"tokens": one.values["cost_usd"]}) for one in pair
        )
        for key, pair in priced.items()
    }
    assert find_certain(tokens) == {"s3"}
    both = {
        key: tuple(
            IterationPool(OutcomeTally(), {**one.values, "tokens": one.values["cost_usd"]})
            for one in pair
        )
        for key, pair in priced.items()
    }
    tests = list_increase_tests(collect_measurements(both), AllowedIncreases())
    assert {test.found.metric for test in tests} == {"cost_usd"}


def test_runs_that_differ_excuse_a_scenario():
    """Its cost doubles and halves from run to run."""
    calm = suite(20, runs=5, factors=[(0, 2.5)])
    moody = suite(20, runs=5, shift=0.7, factors=[(0, 2.5)])
    assert find_certain(calm, 0.2) == {"s0"}
    assert find_certain(moody, 0.2) == set()


def test_a_cost_that_rose_from_nothing_needs_no_test():
    pools = {("a", ""): (pool([0.0, 0.0]), pool([1.0])), ("b", ""): (pool([0.0]), pool([0.0]))}
    assert find_certain(pools, 9.0) == {"a"}
