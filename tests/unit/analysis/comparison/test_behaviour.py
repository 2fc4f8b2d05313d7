"""Tools that are renamed, or called more or less often, over a suite."""

from __future__ import annotations

from collections import Counter

from ci_agent_eval.analysis.comparison.behaviour import compare_behaviour
from ci_agent_eval.analysis.comparison.pool import IterationPool, RunSample
from ci_agent_eval.analysis.comparison.run_variation import PassCounts
from ci_agent_eval.analysis.loaded_results import OutcomeTally
from tests.tables import each_row

LEVEL = 0.025
USUAL = ("look_up", "note", "refund")


def pool(*runs):
    samples = tuple(
        RunSample(place, PassCounts(len(run), len(run)), (), Counter(run))
        for place, run in enumerate(runs)
    )
    return IterationPool(OutcomeTally(), {}, runs=samples)


def suite(before, after, scenarios=10):
    """Return scenarios with one run of the base; each side is a list of sequences."""
    return [(pool(before), pool(after))] * scenarios


def compared(pools):
    found = compare_behaviour(pools, LEVEL)
    renames = [(r.before, r.after, r.scenarios, r.calling) for r in found.renames]
    tools = [(t.tool, t.before, t.after, t.scenarios) for t in found.tools]
    changed = [i for i, p in enumerate(found.p_values) if p is not None and p <= LEVEL]
    return renames, tools, changed


@each_row("iterations", [1, 5])
def test_two_tools_renamed_at_once(iterations):
    new = [("find", "note", "pay_back")] * iterations
    renames, tools, changed = compared(suite([USUAL] * iterations, new))
    assert renames == [("look_up", "find", 10, 10), ("refund", "pay_back", 10, 10)]
    assert (tools, changed) == ([], [])


def test_a_new_tool_at_another_place_is_no_rename():
    """`note` is gone, `ask` comes first: two changes."""
    renames, tools, changed = compared(suite([USUAL], [("ask", "look_up", "refund")]))
    assert renames == []
    assert tools == [("ask", 0.0, 1.0, 10), ("note", 1.0, 0.0, 10)]
    assert changed == []


def test_a_renamed_tool_that_is_also_called_less_often():
    renames, tools, changed = compared(
        suite([USUAL] * 10, [("look_up", "memo", "refund")] * 5 + [("look_up", "refund")] * 5)
    )
    assert renames == [("note", "memo", 10, 10)]
    assert (tools, changed) == ([("note", 1.0, 0.5, 10)], [])


def test_a_scenario_against_the_trend_is_not_explained_by_it():
    """`note` is called less often, and more often in one scenario."""
    without = ("look_up", "refund")
    against = (pool([without] * 10), pool([USUAL] * 10))
    _, tools, changed = compared([*suite([USUAL] * 10, [without] * 10), against])
    assert [tool for tool, *_ in tools] == ["note"]
    assert changed == [10]


def test_few_episodes_that_all_moved_alike_are_confirmed_by_permutations():
    """Five scenarios call a tool once each, only now: no variance, and yet 1 in 16 by chance."""
    rare = suite([USUAL], [(*USUAL, "escalate")], 5)
    assert compared([*rare, *suite([USUAL], [USUAL], 20)]) == ([], [], [])
    often = suite([USUAL] * 2, [(*USUAL, "escalate")] * 2, 5)
    assert compared(often)[1] == [("escalate", 0.0, 1.0, 5)]


def test_four_scenarios_are_no_suite():
    _, tools, changed = compared(suite([USUAL] * 10, [("look_up", "refund")] * 10, 4))
    assert tools == []
    assert changed == [0, 1, 2, 3]
