"""Folding episodes: iterations, attempts, grouped failures, worst violations, totals."""

from __future__ import annotations

import itertools

from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.facts import Tally
from ci_agent_eval.summary import summarize
from tests.builders import episode, failed_assertion, failing, loaded, turn


def summary_of(*episodes):
    return summarize(loaded(*episodes), budgets=SuiteBudgets())


def test_iterations_of_a_scenario_are_counted_together():
    summary = summary_of(episode(iteration=1), failing(iteration=2), episode("other"))
    assert [s.scenario_id for s in summary.scenarios] == ["other", "refund"]
    assert summary.scenarios[1].tally == Tally(passed=1, failed=1)
    assert summary.tally == Tally(passed=2, failed=1)


def test_only_the_last_attempt_of_an_iteration_counts_and_a_late_pass_is_flaky():
    summary = summary_of(failing(attempt=1), episode(attempt=2))
    assert summary.tally == Tally(passed=1)
    assert summary.scenarios[0].flaky == 1


def test_a_failed_assertion_says_in_how_many_iterations_it_failed():
    twice = failed_assertion("cites policy", line=50)
    summary = summary_of(
        failing(iteration=1, assertions=[twice, failed_assertion()]),
        failing(iteration=2, assertions=[twice]),
    )
    failures = summary.scenarios[0].failures
    assert [(f.assertion.name, f.iterations) for f in failures] == [
        ("cites policy", 2),
        ("says sorry", 1),
    ]


def test_an_assertion_that_fails_twice_in_one_iteration_is_one_iteration():
    summary = summary_of(failing(assertions=[failed_assertion(), failed_assertion(reason="x")]))
    (failure,) = summary.scenarios[0].failures
    assert failure.iterations == 1
    assert failure.assertion.reason == "it did not"


def test_reasons_stand_for_what_failed_without_an_assertion():
    summary = summary_of(
        failing(iteration=1, reason="AssertionError"),
        episode(iteration=2, outcome="error", reason="429 from the model"),
        episode(iteration=3, outcome="error", reason="429 from the model"),
    )
    assert summary.scenarios[0].reasons == ()
    assert summary.scenarios[0].unjudged_reasons == ("429 from the model",)
    bare = summary_of(episode(outcome="failed", reason="DID NOT RAISE"))
    assert bare.scenarios[0].reasons == ("DID NOT RAISE",)


def test_the_worst_violation_of_a_budget_stands_for_it():
    def using(used, iteration):
        return episode(
            iteration=iteration, trajectory=None, budgets={"tool_calls": {"used": used, "limit": 4}}
        )

    (item,) = summary_of(using(5, 1), using(7, 2), using(3, 3)).scenarios[0].violations
    assert (item.violation.observed, item.iterations) == (7, 2)


def test_totals_are_unknown_where_a_part_is_unknown():
    priced = {"turns": [turn(cost_usd=0.5, tokens={"input": 10, "output": 2})]}
    summary = summary_of(episode("a", trajectory=priced), episode("b", trajectory=priced))
    assert summary.totals.cost_usd == 1.0
    assert summary.totals.tokens == 24
    mixed = summary_of(episode("a", trajectory=priced), episode("b"))
    assert mixed.totals.cost_usd is None
    assert mixed.totals.unpriced == 1


def test_calls_are_counted_by_where_they_came_from():
    turns = [turn(source="live"), turn(source="replayed"), turn(source="replayed"), turn()]
    calls = summary_of(episode(trajectory={"turns": turns})).calls
    assert (calls.live, calls.replayed, calls.scripted) == (1, 2, 1)


def test_the_order_of_episodes_does_not_matter():
    episodes = [
        failing(iteration=1),
        episode(iteration=2),
        episode("b", outcome="error", reason="x"),
        failing("b", iteration=2, assertions=[failed_assertion("z"), failed_assertion("a")]),
    ]
    summaries = {repr(summary_of(*order)) for order in itertools.permutations(episodes)}
    assert len(summaries) == 1


def test_wall_time_is_kept_only_where_it_has_a_budget():
    assert summary_of(episode()).totals.wall_time_s is None
    budgets = SuiteBudgets.model_validate({"total_wall_time_s": 60})
    assert summarize(loaded(episode()), budgets=budgets).totals.wall_time_s == 2.5


def test_every_attempt_costs_what_it_costs():
    priced = {"turns": [turn(cost_usd=0.5, tokens={"input": 10})]}
    attempts = [failing(attempt=1, trajectory=priced), episode(attempt=2, trajectory=priced)]
    summary = summary_of(*attempts)
    assert (summary.totals.cost_usd, summary.totals.tokens) == (1.0, 20)
    assert summary.scenarios[0].cost_usd == 1.0


def test_a_part_of_the_cost_is_said_where_another_part_is_unknown():
    priced = {"turns": [turn(cost_usd=0.5)]}
    totals = summary_of(episode("a", trajectory=priced), episode("b")).totals
    assert (totals.cost_usd, totals.priced_usd, totals.unpriced) == (None, 0.5, 1)
