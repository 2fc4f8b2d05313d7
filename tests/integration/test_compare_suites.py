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


def test_two_hundred_evaluations_fall_and_newly_failing_ones_stand_first(compared):
    """94.5 % → 85.5 %: 27 newly fail and 9 are fixed; evaluations without a threshold only warn."""
    base, head = evaluations(range(11), 200), evaluations([*range(9, 11), *range(50, 77)], 200)
    code, verdict, text = compared(head, base)
    assert code == 0
    assert {"suite_drop"} == set(kinds(verdict, "warnings")) - {"evaluation"}
    assert "⚠️ whole suite 94.5 % → 85.5 % · the evaluations pass less often, 94 % → 86 %: " in text
    assert "| evaluation conversations passed | 94.5 % | 171/200 | −9.0 pp (" in text
    assert (
        "**Worse:** the evaluations' pass rate 94.5 % → 85.5 % · the evaluations' average" in text
    )
    assert "**Better:** 9 scenarios pass again: " in text
    assert text.count("0/1 passed, newly failing, ") == 27


@pytest.mark.parametrize("runs", [1, 3])
def test_an_unchanged_suite_stays_quiet(compared, runs):
    """The same rates, other scenarios: what chance does in every run."""
    bases = [strict([int(n % 7 == run) for n in range(50)], 5, run) for run in range(runs)]
    head = strict([int(n % 7 == 5) for n in range(50)], 5)
    code, verdict, _ = compared(head, *bases, min_pass_rate=0.0)
    assert (code, kinds(verdict), kinds(verdict, "warnings")) == (0, [], [])
