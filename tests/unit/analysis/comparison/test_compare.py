"""A run against its baseline: what is said of each scenario, and how sure it is."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.comparison.compare import compare_runs
from ci_agent_eval.analysis.comparison.model import (
    AllowedIncreases,
    Baseline,
    BaselineRun,
    ComparePolicy,
    ConditionDifference,
)
from ci_agent_eval.analysis.summary import summarize_results
from ci_agent_eval.contract.budgets import SuiteBudgets
from tests.builders import episode, failing, loaded, tool_call, turn
from tests.tables import each_row


def passing(summary):
    tally = summary.tally
    return tally.passed == tally.judged if tally.judged else None


def run(passed=0, failed=0, scenario="refund", **fields):
    made = [episode(scenario, iteration=i + 1, **fields) for i in range(passed)]
    return made + [failing(scenario, iteration=passed + i + 1, **fields) for i in range(failed)]


def compared(now, *before, shuffle=None, **policy):
    after = loaded(*now)
    if shuffle is not None:
        order = list(after.episodes)
        shuffle.shuffle(order)
        after = replace(after, episodes=tuple(order))
    runs = tuple(BaselineRun(loaded(*past).episodes, commit="4f2a91c") for past in before)
    return compare_runs(
        summarize_results(after, budgets=SuiteBudgets()),
        after.episodes,
        Baseline("main@4f2a91c", runs),
        is_passing=passing,
        required_share=lambda summary: summary.min_pass_rate or 1.0,
        policy=ComparePolicy(**{"across": frozenset(), **policy}),
    )


def only(comparison):
    (scenario,) = comparison.scenarios
    return scenario


@each_row(
    ("now", "before", "change"),
    [
        (run(1), run(1), "unchanged"),
        (run(0, 1), run(1), "newly_failing"),
        (run(0, 1), run(0, 1), "still_failing"),
        (run(1), run(0, 1), "fixed"),
        (run(1), [], "new"),
        ([], run(1), "vanished"),
    ],
)
def test_what_became_of_a_scenario(now, before, change):
    assert only(compared(now, before)).change == change


def test_the_latest_run_that_was_judged_says_whether_it_passed_before():
    errored = [episode(outcome="error", reason="rate limit")]
    assert only(compared(run(0, 1), errored, run(1), run(0, 1))).change == "newly_failing"


def test_a_drop_that_few_iterations_cannot_show_says_how_many_would():
    scenario = only(compared(run(4, 1), run(50)))
    assert scenario.call == "undecided"
    assert scenario.needed_iterations > 5


def test_a_drop_that_chance_makes_in_many_suites_is_not_asked_about():
    """4 of 5 after 50 of 50 is one drop in eleven: in a suite of fifty there are some."""
    now = [e for n in range(50) for e in run(*((4, 1) if n < 7 else (5,)), scenario=f"s{n}")]
    before = [e for n in range(50) for e in run(50, scenario=f"s{n}")]
    assert not compared(now, before).filter_by_decision("undecided")
    worse = [e for n in range(50) for e in run(*((2, 3) if n == 7 else (5,)), scenario=f"s{n}")]
    (asked,) = compared(worse, before).filter_by_decision("undecided", "regression")
    assert asked.scenario_id == "s7"


def test_the_baseline_accumulates_over_runs():
    one = only(compared(run(2, 3), run(5)))
    many = only(compared(run(2, 3), *[run(5, duration_ms=n) for n in range(10)]))
    assert (one.call, many.call) == ("undecided", "regression")
    assert (many.before.passed, many.before.judged) == (50, 50)


def test_a_copy_of_a_run_of_the_base_is_no_further_evidence():
    comparison = compared(run(2, 3), *[run(5)] * 10)
    assert (only(comparison).before.judged, only(comparison).call) == (5, "undecided")
    assert (comparison.runs, comparison.copies) == (10, 9)


def test_a_recording_that_ten_runs_replay_is_one():
    replayed = {"trajectory": {"turns": [turn(source="replayed", latency_ms=81.5)]}}
    base = [run(5, duration_ms=number, **replayed) for number in range(10)]
    comparison = compared(run(2, 3), *base)
    assert (only(comparison).before.judged, comparison.replays) == (5, 45)


@each_row(
    ("condition", "now", "before"),
    [
        ("model", {"model": "openai:a"}, {"model": "openai:b"}),
        ("tools", {"conditions": {"tools": ["a"]}}, {"conditions": {"tools": ["a", "b"]}}),
        ("prices", {"conditions": {"prices": "2"}}, {"conditions": {"prices": "1"}}),
        ("judge", {"conditions": {"judge": "x"}}, {"conditions": {"judge": "y"}}),
    ],
)
def test_other_conditions_are_not_comparable(condition, now, before):
    scenario = only(compared(run(0, 9, **now), run(9, **before)))
    assert (scenario.change, scenario.call) == ("not_comparable", "untested")
    assert [difference.condition for difference in scenario.differences] == [condition]
    across = only(compared(run(0, 9, **now), run(9, **before), across=frozenset({condition})))
    assert (across.change, across.call) == ("newly_failing", "regression")


@each_row("condition", ["model", "tools", "prices"])
def test_only_another_judge_keeps_runs_apart_by_default(condition):
    now, before = ({"model": side} for side in "ab")
    if condition != "model":
        values = {"tools": (["a"], ["b"]), "prices": ("2", "1")}[condition]
        now, before = ({"conditions": {condition: value}} for value in values)
    found = compared(run(0, 9, **now), run(9, **before), across=ComparePolicy().across)
    assert only(found).call == "regression"
    ((changed),) = found.changed_conditions
    assert (changed.difference.condition, changed.scenarios) == (condition, 1)


def test_older_runs_of_another_model_than_the_latest_do_not_count():
    base = [run(9, model="b"), run(9, 1, model="b"), run(0, 9, model="a")]
    found = only(compared(run(9, model="c"), *base, across=ComparePolicy().across))
    assert (found.before.passed, found.before.judged) == (18, 19)


AB, NO_TOOLS = {"conditions": {"tools": ["a", "b"]}}, {"conditions": {"tools": []}}


def mixed(passed, failed, odd=0, fields=AB, other=NO_TOOLS):
    """Iterations of which the last few ran under other conditions, and passed."""
    made = run(passed, failed, **fields)
    first = passed + failed + 1
    return made + [episode(iteration=first + i, **other) for i in range(odd)]


def test_one_odd_iteration_does_not_switch_the_test_off():
    scenario = only(compared(mixed(4, 15, odd=1), run(20, **AB)))
    assert (scenario.change, scenario.call) == ("newly_failing", "regression")
    assert (scenario.after.passed, scenario.after.judged, scenario.after.set_aside) == (4, 19, 1)
    assert scenario.differences == (ConditionDifference("tools", "a, b", "none"),)


def test_conditions_that_never_came_together_are_not_comparable():
    def under(model, judge):
        return {"model": model, "conditions": {"judge": judge}}

    now = mixed(1, 0, odd=1, fields=under("a", "x"), other=under("b", "y"))
    before = mixed(1, 0, odd=1, fields=under("a", "y"), other=under("b", "x"))
    scenario = only(compared(now, before))
    assert scenario.change == "not_comparable"
    assert [found.condition for found in scenario.differences] == ["model", "judge"]


def test_what_an_error_ran_under_is_not_asked():
    errored = episode(iteration=21, outcome="error", reason="rate limit", **NO_TOOLS)
    scenario = only(compared([*run(5, 15, **AB), errored], run(20, **AB)))
    assert (scenario.call, scenario.after.set_aside) == ("regression", 0)


def test_an_iteration_that_says_less_is_like_those_of_its_own_side():
    now = mixed(10, 0, odd=1, fields={"model": "b"}, other={})
    assert only(compared(now, run(10, model="a"))).change == "not_comparable"
    scenario = only(compared(now, run(10, model="b")))
    assert (scenario.after.judged, scenario.after.set_aside) == (11, 0)


def test_a_retry_is_set_aside_with_its_iteration():
    first = failing(iteration=11, attempt=1, **AB)
    retried = episode(iteration=11, attempt=2, **NO_TOOLS)
    scenario = only(compared([*run(10, **AB), first, retried], run(10, **AB)))
    assert (scenario.after.passed, scenario.after.judged, scenario.after.set_aside) == (10, 10, 1)


def test_a_renamed_scenario_is_not_lost():
    scenario = only(compared(run(1, scenario="refund_v2", was=["refund"]), run(0, 1)))
    assert (scenario.change, scenario.renamed_from) == ("fixed", "refund")


def test_the_only_agent_of_a_scenario_may_be_called_otherwise():
    assert only(compared(run(1, agent="desk-v2"), run(1, agent="desk-v1"))).change == "unchanged"
    both = [*run(1, agent="desk-v1"), *run(1, agent="desk-v2")]
    changes = {s.agent: s.change for s in compared(run(1, agent="desk-v3"), both).scenarios}
    assert changes == {"desk-v1": "vanished", "desk-v2": "vanished", "desk-v3": "new"}


def test_a_name_that_lives_on_is_not_taken_over():
    now = [*run(1), *run(1, scenario="copy", was=["refund"])]
    changes = {s.scenario_id: s.change for s in compared(now, run(1)).scenarios}
    assert changes == {"refund": "unchanged", "copy": "new"}


def test_a_name_that_lived_beside_the_new_one_was_not_given_up_for_it():
    now = run(1, scenario="refund_v2", was=["refund"])
    latest = [*run(1, scenario="refund_v2"), *run(1)]
    found = compared(now, latest, run(5))
    assert {s.scenario_id: s.change for s in found.scenarios} == {
        "refund": "vanished",
        "refund_v2": "unchanged",
    }
    renamed = found.scenarios[1]
    assert (renamed.before.judged, renamed.renamed_from) == (1, None)


def test_what_an_older_run_had_under_another_agent_does_not_hide_that_it_vanished():
    latest = [*run(1, agent="desk-v1"), *run(1, agent="desk-v2")]
    changes = {
        s.agent: s.change
        for s in compared(run(1, agent="desk-v2"), latest, run(1, agent="desk-v1")).scenarios
    }
    assert changes == {"desk-v1": "vanished", "desk-v2": "unchanged"}


def test_budgets_that_were_kept_before():
    over = {"budgets": {"tool_calls": {"used": 6, "limit": 4}}}
    kept = {"budgets": {"tool_calls": {"used": 4, "limit": 4}}}
    assert only(compared(run(1, **over), run(1, **kept))).newly_over == ("tool_calls",)
    assert only(compared(run(1, **over), run(1, **over))).newly_over == ()


def path(*names, **fields):
    turns = [{"role": "user", "content": "hi"}]
    turns += [turn(tool_calls=[tool_call(name)]) for name in names]
    return {"trajectory": {"turns": turns}, **fields}


def test_where_the_trajectory_leaves_the_baseline():
    now = run(0, 1, **path("lookup_order", "issue_refund"))
    before = run(1, **path("lookup_order", "ask_manager", "issue_refund"))
    found = only(compared(now, before)).divergence
    assert (found.turn, found.call, found.argument) == (2, 2, None)
    assert found.after == ("lookup_order", "issue_refund")
    assert found.before == ("lookup_order", "ask_manager", "issue_refund")


def test_failures_explain_only_a_scenario_that_got_worse():
    good, bad = path("lookup_order", "ask_manager"), path("lookup_order")
    mixed = [*run(2, **good), *run(0, 1, **bad)]
    worse = only(compared(mixed, run(3, **good))).divergence
    assert (worse.after, worse.episodes, worse.share_after) == (
        ("lookup_order",),
        "failing",
        (1, 1),
    )
    assert (worse.before, worse.share_before) == (("lookup_order", "ask_manager"), (3, 3))
    assert only(compared(run(3, **good), mixed)).divergence is None


def test_the_argument_that_differs():
    call = {"trajectory": {"turns": [turn(tool_calls=[tool_call(arguments={"a": 1, "b": 2})])]}}
    other = {"trajectory": {"turns": [turn(tool_calls=[tool_call(arguments={"a": 1, "b": 3})])]}}
    assert only(compared(run(0, 1, **call), run(1, **other))).divergence.argument == "b"
    assert only(compared(run(20, **call), run(20, **other))).divergence is None


@given(st.randoms(use_true_random=False))
def test_no_order_changes_a_comparison(shuffle):
    now = [*run(2, 1), *run(1, scenario="other", **path("a", "b"))]
    before = [*run(3), *run(1, scenario="other", **path("a"))]
    assert compared(now, before, shuffle=shuffle) == compared(now, before)


def test_false_alarms_stay_below_the_level():
    """With no real change, the share of suites with any regression called is at most 5 %."""
    draw = random.Random(7)
    alarms = 0
    for _ in range(60):
        now, before = [], []
        for number in range(20):
            rate = draw.choice((0.5, 0.8, 0.95, 1.0))
            for side, size in ((now, 10), (before, 20)):
                passed = sum(draw.random() < rate for _ in range(size))
                side.extend(run(passed, size - passed, scenario=f"s{number}"))
        alarms += bool(compared(now, before).filter_by_decision("regression"))
    assert alarms <= 3


@each_row(
    ("limits", "questions"),
    [
        ({}, 1),
        ({"cost": 0.1}, 2),
        ({"cost": 0.1, "latency": 0.1, "typical_latency": 0.1}, 4),
        ({"scenario_cost": 0.1, "scenario_latency": 0.1}, 1),
    ],
)
def test_limits_of_the_suite_share_its_half_of_the_level(limits, questions):
    suite = [item for n in range(5) for item in run(3, scenario=f"s{n}")]
    found = compared(suite, suite, increases=AllowedIncreases(**limits))
    assert found.suite_level == pytest.approx(0.025 / questions)
