"""Folding episodes: iterations, attempts, grouped failures, worst violations, totals."""

from __future__ import annotations

from ci_agent_eval.analysis.loaded_results import OutcomeTally
from ci_agent_eval.analysis.summary import summarize_results
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.evaluation import build_evaluation_report
from tests.builders import episode, evaluated, failing, loaded, turn
from tests.tables import each_row


def summary_of(*episodes):
    return summarize_results(loaded(*episodes), budgets=SuiteBudgets())


def test_only_the_last_attempt_of_an_iteration_counts_and_a_late_pass_is_flaky():
    summary = summary_of(failing(attempt=1), episode(attempt=2))
    assert summary.tally == OutcomeTally(passed=1)
    assert summary.scenarios[0].flaky == 1


def rows(summary):
    return [(s.scenario_id, s.agent, s.among_agents, s.tally) for s in summary.scenarios]


def test_one_scenario_run_by_two_agents_is_two_rows():
    summary = summary_of(
        episode(agent="b"), failing(agent="a"), episode(agent="a", iteration=2), episode("c")
    )
    assert rows(summary) == [
        ("c", None, False, OutcomeTally(passed=1)),
        ("refund", "a", True, OutcomeTally(passed=1, failed=1)),
        ("refund", "b", True, OutcomeTally(passed=1)),
    ]


def test_an_episode_that_ended_before_it_named_its_agent_is_of_the_only_one_it_can_be():
    lost = episode(iteration=2, outcome="error", reason="killed")
    assert rows(summary_of(episode(agent="a"), lost)) == [
        ("refund", "a", False, OutcomeTally(passed=1, error=1))
    ]
    retried = [episode(nodeid="x", outcome="error"), episode(nodeid="x", agent="b", attempt=2)]
    assert rows(summary_of(episode(agent="a"), *retried)) == [
        ("refund", "a", True, OutcomeTally(passed=1)),
        ("refund", "b", True, OutcomeTally(passed=1)),
    ]


def test_a_pass_without_an_agent_is_lent_to_none_and_an_unclear_error_stays_by_itself():
    assert rows(summary_of(failing(agent="a"), episode(iteration=2))) == [
        ("refund", None, True, OutcomeTally(passed=1)),
        ("refund", "a", True, OutcomeTally(failed=1)),
    ]
    unclear = summary_of(
        episode(agent="a"), episode(agent="b"), episode(outcome="error", nodeid="y")
    )
    assert rows(unclear)[0] == ("refund", None, True, OutcomeTally(error=1))


def test_a_pass_rate_has_an_interval_from_two_judged_iterations_on():
    one = summary_of(episode())
    assert (one.pass_interval, one.scenarios[0].pass_interval) == (None, None)
    runs = [episode(iteration=n) for n in range(1, 57)]
    runs += [failing(iteration=n) for n in range(57, 61)]
    built = summary_of(*runs, episode("errs", outcome="error"))
    assert built.pass_interval == built.scenarios[1].pass_interval == (0.840746, 0.973771)


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


def test_every_attempt_costs_what_it_costs():
    priced = {"turns": [turn(cost_usd=0.5, tokens={"input": 10})]}
    attempts = [failing(attempt=1, trajectory=priced), episode(attempt=2, trajectory=priced)]
    summary = summary_of(*attempts)
    assert (summary.totals.cost_usd, summary.totals.tokens) == (1.0, 20)
    assert summary.scenarios[0].cost_usd == 1.0


def test_evaluations_are_tallied_as_their_report_does():
    episodes = [
        evaluated("a", True, False),
        evaluated("a", True, iteration=2),
        evaluated("b", False, outcome="error"),
        evaluated("c", outcome="skipped"),
        evaluated("d", False),
        evaluated("d", True, True, attempt=2),
        episode("strict"),
    ]
    found, told = summary_of(*episodes), build_evaluation_report(episodes)
    whole = found.evaluations
    assert (whole.conversations, whole.passed) == (4, 2)
    assert (whole.conversations, whole.passed, whole.mean_score) == (
        told.total_conversations,
        told.passed_conversations,
        told.average_score,
    )
    assert (whole.assertions, whole.assertions_passed) == (6, 4)
    modes = {scenario.scenario_id: scenario.mode for scenario in found.scenarios}
    assert modes == dict.fromkeys("abcd", "evaluation") | {"strict": "strict"}


def test_a_scenario_of_a_strict_test_too_is_strict():
    (scenario,) = summary_of(evaluated("a", False), episode("a", iteration=2)).scenarios
    assert (scenario.mode, scenario.gate) == ("strict", "required")


JUDGED = {"calls": 2, "tokens": {"input": 90, "output": 10}, "cost_usd": 0.25}


def test_what_judging_took_is_part_of_the_totals():
    budgets = SuiteBudgets.model_validate({"total_cost_usd": 0.4, "total_tokens": 100})
    used = {"trajectory": {"turns": [turn(cost_usd=0.5, tokens={"input": 5, "output": 5})]}}
    found = summarize_results(
        loaded(
            episode(judge=JUDGED, **used),
            evaluated("a", judge=JUDGED, **used),
            episode("c", **used),
        ),
        budgets=budgets,
    )
    assert (found.totals.cost_usd, found.totals.tokens) == (2.0, 230)
    assert (found.totals.judge.calls, found.totals.judge.tokens) == (4, 200)
    assert found.totals.judge.cost_usd == 0.5
    assert [(v.budget, v.observed) for v in found.suite_violations] == [
        ("total_cost_usd", 2.0),
        ("total_tokens", 230),
    ]
    assert found.scenarios[1].cost_usd == 0.5, "an episode's own cost is the agent's"


def test_what_simulated_users_took_is_part_of_the_totals():
    used = {"trajectory": {"turns": [turn(cost_usd=0.5, tokens={"input": 5, "output": 5})]}}
    totals = summary_of(episode(simulated_user=JUDGED, judge=JUDGED, **used)).totals
    assert (totals.cost_usd, totals.tokens) == (1.0, 210)
    assert totals.simulated_user == totals.judge


@each_row("gap", ["tokens", "cost_usd"])
def test_what_a_simulated_user_does_not_tell_leaves_the_total_unknown(gap):
    used = {"trajectory": {"turns": [turn(cost_usd=0.5, tokens={"input": 5, "output": 5})]}}
    totals = summary_of(episode(simulated_user={**JUDGED, gap: None}, **used)).totals
    assert getattr(totals, gap) is None


def test_a_judge_without_a_price_leaves_the_total_unknown():
    priced = {"trajectory": {"turns": [turn(cost_usd=0.5)]}}
    found = summary_of(episode(judge={**JUDGED, "cost_usd": None}, **priced)).totals
    assert (found.cost_usd, found.priced_usd, found.judge.unpriced) == (None, 0.5, 1)
