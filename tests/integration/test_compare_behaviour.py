"""Changes of the tool calls between a run and its baseline, through the CLI."""

from __future__ import annotations

import re

import pytest

from tests.builders import episode, failed_assertion, tool_call, turn

USUAL = ("lookup_order", "send_note")


def calls(number, iteration, tools, shift=0, **fields):
    turns = [{"role": "user", "content": "hi"}]
    turns += [turn(tool_calls=[tool_call(name) for name in tools])]
    return episode(
        f"s{number:03}",
        iteration=iteration + 1,
        duration_ms=shift + 1,
        **{"trajectory": {"turns": turns}, **fields},
    )


def suite(choose, scenarios=40, iterations=5, shift=0, **fields):
    """Return episodes whose tools `choose` returns by scenario and iteration."""
    return [
        calls(number, iteration, choose(number, iteration), shift, **fields)
        for number in range(scenarios)
        for iteration in range(iterations)
    ]


def failed(number, iteration, tools):
    found = {"outcome": "failed", "assertions": [failed_assertion()]}
    return calls(number, iteration, tools, **found)


def usual(number, iteration):
    return USUAL


@pytest.mark.parametrize("runs", [1, 5])
def test_a_failing_minority_of_the_base_is_not_its_behaviour(compared, runs):
    """1 of 25 failed in the base by other calls; the head is unchanged."""
    bases = [suite(usual, shift=run) for run in range(runs)]
    for number in range(0, 40, 4):
        bases[0][number * 5] = failed(number, 0, ("lookup_order",))
    code, verdict, text = compared(suite(usual), *bases)
    assert code == 0
    assert "first divergence" not in text
    assert not any(s["divergence"] for s in verdict["comparison"]["scenarios"])


def test_what_varies_from_run_to_run_is_no_change(compared):
    """Each run of the base calls another tool in some scenario, as the head does."""
    bases = [
        suite(lambda n, i, run=run: ("ask_manager",) if n % 9 == run else USUAL, shift=run)
        for run in range(8)
    ]
    head = suite(lambda n, i: ("ask_manager",) if n % 9 == 8 else USUAL)
    assert "first divergence" not in compared(head, *bases)[2]


@pytest.mark.parametrize("iterations", [1, 5])
def test_a_renamed_tool_is_one_line_and_stays_comparable(compared, iterations):
    old, new = ({"conditions": {"tools": [name, "send_note"]}} for name in ("lookup", "find"))
    base = suite(lambda n, i: ("lookup", "send_note"), iterations=iterations, **old)
    head = suite(lambda n, i: ("find", "send_note"), iterations=iterations, **new)
    code, verdict, text = compared(head, base)
    assert code == 0
    assert "tool `lookup` is now `find` in 40 scenarios; every other call is as before\n" in text
    assert "first divergence" not in text
    compared_ = verdict["comparison"]["scenarios"]
    assert {s["change"] for s in compared_} == {"unchanged"}
    assert not any(s["differences"] or s["behaviour"]["changed"] for s in compared_)


def test_a_tool_that_is_called_less_often_is_one_line(compared):
    def rarely(number, iteration):
        return USUAL if number >= 32 or (number + iteration) % 5 < 3 else USUAL[:1]

    text = compared(suite(rarely), *[suite(usual, shift=run) for run in range(10)])[2]
    line = "**Different:** `send_note` is called in 100 % → 68 % of the episodes of 40 scenarios"
    assert line in text
    assert "first divergence" not in text


def test_a_scenario_that_changed_otherwise_is_still_shown(compared):
    """The tool is renamed everywhere; one scenario also asks a manager."""
    base = suite(lambda n, i: ("lookup", "send_note"), iterations=10)
    head = suite(
        lambda n, i: ("find", "ask_manager") if n == 7 else ("find", "send_note"), iterations=10
    )
    text = compared(head, base)[2]
    assert "tool `lookup` is now `find` in 40 scenarios; 1 scenario makes other tool calls" in text
    shown = re.findall(r"`(s\d+)`, first divergence at (.*):\n\n```diff\n(.*)\n(.*)\n", text)
    assert shown == [
        (
            "s007",
            "tool call 2 of turn 1",
            "- lookup → send_note  (10 of 10 episodes)",
            "+ find → ask_manager  (10 of 10 episodes)",
        )
    ]


def test_failing_episodes_are_held_against_the_passing_ones_of_the_base(compared):
    """2 of 5 fail by a new path; most episodes of the base and of the head go the usual one."""
    head = suite(usual, 6)
    head[:2] = [failed(0, iteration, ("lookup_order", "ask_manager")) for iteration in range(2)]
    code, _, text = compared(head, suite(usual, 6))
    assert code == 1
    assert "\n- lookup_order → send_note(order_id=1001)\n+ lookup_order → ask_manager(" in text
