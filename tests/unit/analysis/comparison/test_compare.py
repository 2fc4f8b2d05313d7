"""A run against its baseline: what is said of each scenario, and how sure it is."""

from __future__ import annotations

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


def path(*names, **fields):
    turns = [{"role": "user", "content": "hi"}]
    turns += [turn(tool_calls=[tool_call(name)]) for name in names]
    return {"trajectory": {"turns": turns}, **fields}


def mixed(passed, failed, odd=0, fields=None, other=None):
    """Iterations of which the last few ran under other conditions, and passed."""
    made = run(passed, failed, **(AB if fields is None else fields))
    fields = NO_TOOLS if other is None else other
    return made + [episode(iteration=passed + failed + 1 + i, **fields) for i in range(odd)]


def across(now, *before):
    return compared(now, *before, across=ComparePolicy().across)


def under(model, judge):
    return {"model": model, "conditions": {"judge": judge}}


AB, NO_TOOLS = {"conditions": {"tools": ["a", "b"]}}, {"conditions": {"tools": []}}
ERRORED = episode(iteration=21, outcome="error", reason="rate limit", **NO_TOOLS)
REPLAYED = {"trajectory": {"turns": [turn(source="replayed", latency_ms=81.5)]}}
CONDITIONS = {
    "model": ({"model": "openai:a"}, {"model": "openai:b"}),
    "tools": ({"conditions": {"tools": ["a"]}}, {"conditions": {"tools": ["a", "b"]}}),
    "prices": ({"conditions": {"prices": "2"}}, {"conditions": {"prices": "1"}}),
    "judge": ({"conditions": {"judge": "x"}}, {"conditions": {"judge": "y"}}),
}
OVER, KEPT = ({"budgets": {"tool_calls": {"used": used, "limit": 4}}} for used in (6, 4))
ASKED, BOLD = (
    path("lookup_order", "ask_manager", "issue_refund"),
    path("lookup_order", "issue_refund"),
)
GOOD, SHORT = path("lookup_order", "ask_manager"), path("lookup_order")
V1, V2, V3 = ({"agent": f"desk-v{n}"} for n in (1, 2, 3))
RENAMED = {"scenario": "refund_v2", "was": ["refund"]}

CASES = {
    "as before": lambda: compared(run(1), run(1)),
    "fails now": lambda: compared(run(0, 1), run(1)),
    "fails still": lambda: compared(run(0, 1), run(0, 1)),
    "is fixed": lambda: compared(run(1), run(0, 1)),
    "is new": lambda: compared(run(1), []),
    "is gone": lambda: compared([], run(1)),
    "the latest run that was judged": lambda: compared(run(0, 1), [ERRORED], run(1), run(0, 1)),
    "a drop that few iterations cannot show": lambda: compared(run(4, 1), run(50)),
    "a drop that one run cannot show": lambda: compared(run(2, 3), run(5)),
    "a drop that ten runs show": lambda: compared(run(2, 3), *[run(5, duration_ms=n) for n in range(10)]),
    "a drop beside copies of a run": lambda: compared(run(2, 3), *[run(5)] * 10),
    "a drop beside replays": lambda: compared(run(2, 3), *[run(5, duration_ms=n, **REPLAYED) for n in range(10)]),
    # Conditions
    **{
        f"another {name}": lambda now=now, before=before: compared(run(0, 9, **now), run(9, **before))
        for name, (now, before) in CONDITIONS.items()
    },
    **{
        f"another {name}, by default": lambda now=now, before=before: across(run(0, 9, **now), run(9, **before))
        for name, (now, before) in CONDITIONS.items()
    },
    "older runs of another model": lambda: across(run(9, model="c"), run(9, model="b"), run(9, 1, model="b"), run(0, 9, model="a")),
    "one odd iteration": lambda: compared(mixed(4, 15, odd=1), run(20, **AB)),
    "conditions that never came together": lambda: compared(
        mixed(1, 0, 1, under("a", "x"), under("b", "y")), mixed(1, 0, 1, under("a", "y"), under("b", "x"))
    ),
    "what an error ran under": lambda: compared([*run(5, 15, **AB), ERRORED], run(20, **AB)),
    "an iteration that says less, of another model": lambda: compared(mixed(10, 0, 1, {"model": "b"}, {}), run(10, model="a")),
    "an iteration that says less": lambda: compared(mixed(10, 0, 1, {"model": "b"}, {}), run(10, model="b")),
    "a retry under other conditions": lambda: compared(
        [*run(10, **AB), failing(iteration=11, attempt=1, **AB), episode(iteration=11, attempt=2, **NO_TOOLS)],
        run(10, **AB),
    ),
    # Names
    "another name": lambda: compared(run(1, **RENAMED), run(0, 1)),
    "another name of the agent": lambda: compared(run(1, **V2), run(1, **V1)),
    "another agent for two": lambda: compared(run(1, **V3), [*run(1, **V1), *run(1, **V2)]),
    "a name that lives on": lambda: compared([*run(1), *run(1, scenario="copy", was=["refund"])], run(1)),
    "a name that lived beside the new one": lambda: compared(run(1, **RENAMED), [*run(1, scenario="refund_v2"), *run(1)], run(5)),
    "an agent that vanished": lambda: compared(run(1, **V2), [*run(1, **V1), *run(1, **V2)], run(1, **V1)),
    # Budgets and calls
    "newly over budget": lambda: compared(run(1, **OVER), run(1, **KEPT)),
    "over budget as before": lambda: compared(run(1, **OVER), run(1, **OVER)),
    "a call less": lambda: compared(run(0, 1, **BOLD), run(1, **ASKED)),
    "a call less in failures": lambda: compared([*run(2, **GOOD), *run(0, 1, **SHORT)], run(3, **GOOD)),
    "a call more in what got better": lambda: compared(run(3, **GOOD), [*run(2, **GOOD), *run(0, 1, **SHORT)]),
}  # fmt: skip


def describe_side(side):
    return f"{side.passed}/{side.judged}" + (
        f" ({side.set_aside} set aside)" if side.set_aside else ""
    )


def describe(name, comparison):
    lines = [
        f"{name}: {comparison.runs} runs, {comparison.copies} copies, {comparison.replays} replays"
    ]
    for one in comparison.scenarios:
        agent = f" by {one.agent}" if one.agent else ""
        before, after = (
            "-" if side is None else describe_side(side) for side in (one.before, one.after)
        )
        lines.append(f"  {one.scenario_id}{agent}: {one.change}, {one.call}, {before} -> {after}")
        lines += [f"    was {one.renamed_from}"] if one.renamed_from else []
        lines += [f"    needs {one.needed_iterations}"] if one.needed_iterations else []
        lines += [f"    newly over {budget}" for budget in one.newly_over]
        for difference in (*one.differences, *one.changed_conditions):
            lines.append(f"    {difference.condition}: {difference.before} -> {difference.after}")
        if found := one.divergence:
            lines.append(f"    call {found.call} in {found.episodes}")
            lines += [
                f"    {found.before} {found.share_before} -> {found.after} {found.share_after}"
            ]
    return "\n".join(lines)


def test_what_became_of_scenarios_is_the_golden_text(golden):
    text = "\n".join(describe(name, build()) for name, build in CASES.items())
    golden("compare/scenarios.txt", f"{text}\n")


def test_a_drop_that_chance_makes_in_many_suites_is_not_asked_about():
    """4 of 5 after 50 of 50 is one drop in eleven: in a suite of fifty there are some."""
    now = [e for n in range(50) for e in run(*((4, 1) if n < 7 else (5,)), scenario=f"s{n}")]
    before = [e for n in range(50) for e in run(50, scenario=f"s{n}")]
    assert not compared(now, before).filter_by_decision("undecided")
    worse = [e for n in range(50) for e in run(*((2, 3) if n == 7 else (5,)), scenario=f"s{n}")]
    (asked,) = compared(worse, before).filter_by_decision("undecided", "regression")
    assert asked.scenario_id == "s7"


@given(st.randoms(use_true_random=False))
def test_no_order_changes_a_comparison(shuffle):
    now = [*run(2, 1), *run(1, scenario="other", **path("a", "b"))]
    before = [*run(3), *run(1, scenario="other", **path("a"))]
    assert compared(now, before, shuffle=shuffle) == compared(now, before)


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
