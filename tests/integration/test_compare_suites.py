"""Drops that only the suite shows, and those that one run of the base shows, through the CLI."""

from __future__ import annotations

import pytest

from tests.builders import episode, evaluated, failing


def strict(failed, iterations, shift=0, **fields):
    """Return a scenario for each number of failed iterations; `shift` makes a run distinct."""
    found = []
    for number, lost in enumerate(failed):
        for iteration in range(1, iterations + 1):
            build = failing if iteration <= lost else episode
            scenario = f"s{number:03}"
            found.append(build(scenario, iteration=iteration, duration_ms=shift + 1, **fields))
    return found


def evaluations(failed, count, **fields):
    return [
        evaluated(
            f"case{n:03}", n not in failed, outcome="failed" if n in failed else "passed", **fields
        )
        for n in range(count)
    ]


def kinds(verdict, part="reasons"):
    return [reason["kind"] for reason in verdict["verdict"][part]]


def test_half_of_fifty_scenarios_fall_without_a_required_rate(compared):
    """89.8 % → 44.0 % with one iteration each: no scenario shows it, the suite does."""
    bases = [strict([int(n % 10 == run % 10) for n in range(50)], 1, run) for run in range(10)]
    head = strict([int(n % 25 >= 11) for n in range(50)], 1)
    code, verdict, text = compared(head, *bases, min_pass_rate=0.0)
    assert code == 1
    assert kinds(verdict) == ["suite_drop"]
    assert "the suite passes less often, 90 % → 44 %" in text.splitlines()[2]
    assert "| −46.0 pp (−60.3 to −31.7), certain |" in text


def test_forty_scenarios_fall_a_little_each(compared):
    """97.5 % → 88.0 % against one run of the base."""
    base = strict([int(n % 8 == 0) for n in range(40)], 5)
    head = strict([int(n % 5 < 3) for n in range(40)], 5)
    code, verdict, text = compared(head, base, min_pass_rate=0.0)
    assert code == 1
    assert kinds(verdict) == ["suite_drop"]
    assert "one base run, day-to-day variation of ±2 % assumed" in text


def test_two_hundred_evaluations_fall_and_newly_failing_ones_stand_first(compared):
    """94.5 % → 85.5 %: 27 newly fail and 9 are fixed; evaluations without a threshold only warn."""
    base, head = evaluations(range(11), 200), evaluations([*range(9, 11), *range(50, 77)], 200)
    code, verdict, text = compared(head, base)
    assert code == 0
    assert {"suite_drop"} == set(kinds(verdict, "warnings")) - {"evaluation"}
    assert "⚠️ whole suite 94.5 % → 85.5 % · the evaluations' pass rate fell over" in text
    assert "| evaluation conversations passed | 94.5 % | 171 / 200 | −9.0 pp (" in text
    assert (
        "**Worse:** the evaluations' pass rate 94.5 % → 85.5 % · the evaluations' average" in text
    )
    assert "**Better:** 9 scenarios pass again: " in text
    assert text.count("0/1 passed, newly failing, ") == 27


def test_one_broken_scenario_of_fifty_is_found_with_one_run_of_the_base(compared):
    base = strict([1 if n in {3, 9} else 0 for n in range(50)], 5)
    head = strict([5 if n == 20 else int(n in {4, 9}) for n in range(50)], 5)
    code, verdict, _ = compared(head, base, min_pass_rate=0.0)
    assert code == 1
    found = [(reason["kind"], reason["scenario_id"]) for reason in verdict["verdict"]["reasons"]]
    assert found == [("regression", "s020")]


@pytest.mark.parametrize("runs", [1, 3])
def test_an_unchanged_suite_stays_quiet(compared, runs):
    """The same rates, other scenarios: what chance does in every run."""
    bases = [strict([int(n % 7 == run) for n in range(50)], 5, run) for run in range(runs)]
    head = strict([int(n % 7 == 5) for n in range(50)], 5)
    code, verdict, _ = compared(head, *bases, min_pass_rate=0.0)
    assert (code, kinds(verdict), kinds(verdict, "warnings")) == (0, [], [])


def test_runs_that_differ_excuse_a_scenario(compared):
    """6 of 20 after runs of 20, 9, 18 and 12: that is how this agent is."""
    past = [(0, 11, 2, 8), (4, 0, 10, 1), (9, 3, 0, 12), (1, 8, 0, 5), (12, 2, 6, 0)]
    bases = [strict([scenario[run] for scenario in past], 20, run) for run in range(4)]
    head = strict([14, 2, 1, 3, 4], 20)
    code, verdict, _ = compared(head, *bases, min_pass_rate=0.0)
    assert (code, kinds(verdict)) == (0, [])


def test_a_model_upgrade_is_compared_and_said(compared):
    """8 of 8 → 1 of 8 with another model: a note in a fold, once."""
    head, base = strict([7], 8, model="gpt-5.2"), strict([0], 8, model="gpt-5")
    code, verdict, text = compared(head, base, min_pass_rate=0.1)
    assert (code, kinds(verdict)) == (1, ["regression"])
    said = "- 🔵 **Different:** model `gpt-5` → `gpt-5.2` in 1 scenario; the answer in `s000`"
    assert said in text.splitlines()[:6]
