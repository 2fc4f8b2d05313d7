"""Variants side by side: agents that ran the same scenarios in one run."""

from __future__ import annotations

import random

import pytest
from scipy import stats

from ci_agent_eval.analysis.comparison.variants import compare_variants
from ci_agent_eval.contract.episode import CarriedOver
from tests.builders import episode, evaluated, failing, live, loaded

PARAMETERS = {"concise": "[concise]", "detailed": "[detailed]", "none": "[none]"}


def ran(agent, scenario_id, passes, iterations, **overrides):
    """Episodes of a variant, of which the first `passes` pass."""
    return [
        (episode if number <= passes else failing)(
            scenario_id,
            agent=agent,
            nodeid=f"tests/test_desk.py::test_{scenario_id}{PARAMETERS[agent]}",
            iteration=number,
            iterations=iterations,
            **overrides,
        )
        for number in range(1, iterations + 1)
    ]


def compare(*groups):
    return compare_variants(loaded(*(one for group in groups for one in group)).episodes)


def figures(pair):
    return {figure.measure: figure for figure in pair.figures}


def test_one_agent_is_compared_with_nothing():
    assert compare(ran("concise", "balance", 1, 2)) == ()
    assert compare(ran("concise", "balance", 1, 2), ran("detailed", "transfer", 1, 2)) == ()


def test_a_pair_has_the_means_over_the_scenarios_that_both_ran():
    (pair,) = compare(
        ran("concise", "balance", 1, 2, trajectory=live(0.01, 200)),
        ran("detailed", "balance", 2, 2, trajectory=live(0.02, 400)),
        ran("concise", "transfer", 4, 4, trajectory=live(0.03, 200)),
        ran("detailed", "transfer", 2, 4, trajectory=live(0.06, 400)),
        ran("detailed", "alone", 0, 4),
    )
    assert (pair.first, pair.second) == ("concise", "detailed")
    found = figures(pair)
    assert (found["pass_rate"].first, found["pass_rate"].second) == (0.75, 0.75)
    assert (found["cost_usd"].first, found["cost_usd"].second) == (0.02, 0.04)
    assert found["typical_latency_ms"].second == pytest.approx(400)
    assert [
        (s.scenario_id, s.first_passed, s.first_judged, s.second_passed, s.second_judged)
        for s in pair.scenarios
    ] == [("balance", 1, 2, 2, 2), ("transfer", 4, 4, 2, 4)]


def test_the_first_by_name_is_compared_with_each_other_one():
    pairs = compare(*(ran(agent, "balance", 1, 2) for agent in ("none", "detailed", "concise")))
    assert [(p.first, p.second) for p in pairs] == [("concise", "detailed"), ("concise", "none")]


def test_variants_that_were_not_judged_are_no_pair():
    errors = ran("detailed", "balance", 2, 2, outcome="error", reason="503")
    assert compare(ran("concise", "balance", 2, 2), errors) == ()


@pytest.mark.parametrize("outcome", ["skipped", "error"])
def test_a_variant_that_was_not_judged_does_not_hide_the_others(outcome):
    (pair,) = compare(
        ran("concise", "balance", 2, 2, outcome=outcome, reason="no key"),
        ran("detailed", "balance", 1, 2),
        ran("none", "balance", 2, 2),
    )
    assert (pair.first, pair.second) == ("detailed", "none")


def test_a_handful_of_iterations_decides_nothing():
    (pair,) = compare(ran("concise", "balance", 0, 3), ran("detailed", "balance", 3, 3))
    rate = figures(pair)["pass_rate"]
    assert (rate.first, rate.second, rate.interval, rate.differs) == (0.0, 1.0, None, False)
    assert not pair.scenarios[0].differs


@pytest.mark.parametrize("sides", [(5, 12), (12, 5)])
def test_a_scenario_differs_by_fishers_test(sides):
    """The level is a quarter of 5 %: half for scenarios, half of that for a direction."""
    (pair,) = compare(*(ran(a, "x", n, 12) for a, n in zip(PARAMETERS, sides, strict=False)))
    p_value = stats.fisher_exact([[5, 7], [12, 0]], alternative="less").pvalue
    assert p_value < 0.0125
    assert pair.scenarios[0].differs


def test_five_scenarios_are_tested_together():
    passes = [(2, 4), (1, 4), (2, 3), (1, 4), (2, 4), (1, 3)]
    (pair,) = compare(
        *(
            ran(agent, f"s{at}", sides[side], 4)
            for at, sides in enumerate(passes)
            for side, agent in enumerate(("concise", "detailed"))
        )
    )
    rate = figures(pair)["pass_rate"]
    found = stats.ttest_rel(*([sides[side] / 4 for sides in passes] for side in (1, 0)))
    assert rate.interval == pytest.approx(tuple(found.confidence_interval(0.95)))
    assert rate.differs
    assert not any(scenario.differs for scenario in pair.scenarios)


def test_evaluations_have_a_score():
    (pair,) = compare(
        *(
            [evaluated("tone", *passed, agent=agent, nodeid=f"evals/tone_eval.py::t[{agent}]")]
            for agent, passed in (("concise", (True, False)), ("detailed", (True, True)))
        )
    )
    score = figures(pair)["score"]
    assert (score.first, score.second, score.interval) == (0.5, 1.0, None)


def test_carried_over_results_are_not_compared():
    origin = CarriedOver(run="7", commit="a" * 40, recorded_at=0)
    assert not compare(
        ran("concise", "balance", 1, 2, carried_over=origin), ran("detailed", "balance", 1, 2)
    )


@pytest.mark.parametrize("costs", [(0.0, 0.01), (0.01, 0.0)])
def test_one_rare_value_beside_zeros_is_not_certain(costs):
    """Which variant is the first by name does not matter."""
    (pair,) = compare(
        *(
            ran(agent, "balance", 1, 1, trajectory=live(cost))
            + [
                one.model_copy(update={"iteration": number})
                for number in range(2, 7)
                for one in ran(agent, "balance", 1, 1, trajectory=live(0.0))
            ]
            for agent, cost in zip(("concise", "detailed"), costs, strict=True)
        )
    )
    cost = figures(pair)["cost_usd"]
    assert cost.first != cost.second
    assert (cost.interval, cost.differs) == (None, False)


def test_at_most_fifty_pairs_are_compared():
    pairs = compare(
        episode("x", agent=f"a{at}", nodeid=f"tests/test_x.py::test_x[{at}]") for at in range(60)
    )
    assert [pair.second for pair in pairs] == [f"a{at}" for at in range(1, 51)]


def draw_equal_variants(draw, scenarios=8, iterations=4):
    """Episodes of two variants with the same pass rate, costs and latencies."""
    return [
        one
        for at in range(scenarios)
        for agent in ("concise", "detailed")
        for number in range(1, iterations + 1)
        for drawn in ran(
            agent,
            f"s{at}",
            int(draw.random() < 0.8),
            1,
            trajectory=live(0.01 * draw.lognormvariate(0, 0.3), draw.uniform(200, 900)),
        )
        for one in [drawn.model_copy(update={"iteration": number})]
    ]


def test_equal_variants_seldom_differ():
    """At most one run in twenty may show any difference."""
    draw = random.Random(8)
    pairs = [pair for _ in range(40) for pair in compare(draw_equal_variants(draw))]
    wrong = [pair for pair in pairs if any(o.differs for o in (*pair.figures, *pair.scenarios))]
    assert len(pairs) == 40
    assert len(wrong) <= 2
