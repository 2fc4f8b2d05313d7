"""Words about results of an earlier run: their origin, the savings, and why they do not count."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from ci_agent_eval.analysis.loaded_results import CarriedTotals, OutcomeTally
from ci_agent_eval.analysis.summary import Summary
from ci_agent_eval.contract.findings import CarryProblem, RefusedResults
from ci_agent_eval.render.carried_results import list_carried_parts
from ci_agent_eval.render.sentences import describe_finding
from tests.builders import HOSTILE, finding
from tests.carried_runs import BASE_COMMIT

TOTALS = CarriedTotals(BASE_COMMIT, scenarios=38, tally=OutcomeTally(passed=114))


def parts(**fields):
    return list(list_carried_parts(Summary(), replace(TOTALS, **fields)))


@pytest.mark.parametrize(
    ("fields", "origin"),
    [
        ({"run": "123", "age_days": 2}, "run 123, a1b2c3d, 2 days ago"),
        ({"age_days": 1}, "a1b2c3d, 1 day ago"),
        ({"age_days": 0}, "a1b2c3d, today"),
        ({}, "a1b2c3d"),
        ({"run": HOSTILE, "commit": HOSTILE}, "an earlier run"),
    ],
)
def test_the_origin(fields, origin):
    said = parts(**fields)[0]
    assert said == f"0 of 0 scenarios ran; 38 carried over from {origin}"


@pytest.mark.parametrize(
    ("fields", "saved"),
    [
        ({}, "114 episodes"),
        ({"cost_usd": 1.2, "duration_ms": 725_000}, "114 episodes, $1.20, 12 min 5 s"),
    ],
)
def test_the_savings(fields, saved):
    assert parts(**fields)[1] == f"saved {saved}"


@pytest.mark.parametrize("problem", get_args(CarryProblem))
def test_each_refusal_is_one_sentence_with_its_remedy(problem):
    sentence = describe_finding(finding("carried_over", message=RefusedResults(problem, ("a",))))
    assert sentence.startswith("earlier results of a do not count: ")
    assert "; " in sentence
    assert "\n" not in sentence


def test_a_refusal_names_its_cause_and_no_more_than_twenty_scenarios():
    names = tuple(f"s{number}" for number in range(25))
    data = RefusedResults("not_proven_unchanged", names, "no_commit")
    sentence = describe_finding(finding("carried_over", message=data))
    assert "s19 and 5 more do not count" in sentence
    assert "did not (no commit); " in sentence
