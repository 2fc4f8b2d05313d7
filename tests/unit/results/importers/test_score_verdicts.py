"""Imported results that are judged by their scores."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.score_thresholds import parse_score_thresholds
from ci_agent_eval.results.importers.protocol import ImportProblem
from ci_agent_eval.results.importers.score_verdicts import build_score, judge_scores
from tests.tables import each_row


def judge(cases, thresholds="", rule="thresholds"):
    """Judge cases, each given as its scores or as the fields of an episode."""
    data = [
        {"scenario_id": f"case {number}", **(fields if "scores" in fields else scored(fields))}
        for number, fields in enumerate(cases)
    ]
    found = judge_scores(data, rule, parse_score_thresholds(thresholds), set())
    return [Episode.model_validate(item) for item in found]


def scored(values):
    return {"scores": [build_score(name, value) for name, value in values.items()]}


def outcomes(*arguments, **named):
    return [episode.outcome for episode in judge(*arguments, **named)]


def test_a_threshold_makes_a_score_an_assertion():
    passed, failed = judge([{"faith": 0.8}, {"faith": 0.79}], "faith>=0.8")
    assert (passed.outcome, failed.outcome) == ("passed", "failed")
    (assertion,) = failed.assertions
    assert (assertion.name, assertion.score, assertion.reason) == (
        "faith",
        0.79,
        "0.79, at least 0.8",
    )
    assert failed.scores == ()


def test_scores_beyond_one_are_judged_too():
    passed, failed = judge([{"stars": 4}, {"stars": 3}], "stars>=3.5")
    assert [passed.assertions[0].score, failed.assertions[0].score] == [1, 0]
    assert failed.assertions[0].reason == "3, at least 3.5"


def test_a_star_judges_every_other_score():
    (found,) = judge([{"a": 0.6, "b": 0.6}], "a>=0.7 *>=0.5")
    assert {a.name: a.passed for a in found.assertions} == {"a": False, "b": True}


def test_scores_without_threshold_are_an_error_that_names_the_remedy():
    (found,) = judge([{"a": 0.93, "b": 1, "c": 1, "d": 1}])
    assert found.outcome == "error"
    assert found.reason == (
        "it was not judged: no score of it (a, b, c, …) says pass or fail; "
        "set a threshold for one, such as --score-thresholds 'a>=…'"
    )


@each_row("value", [math.nan, math.inf, -math.inf, None, "0.9", [], 10**300])
@each_row("rule", ["binary", "thresholds"])
def test_a_score_that_is_no_number_does_not_pass(value, rule):
    other = {"a": 0.9, "b": 1}
    found = judge([other, {"a": value, "b": 1}], "a>=0.5 b>=1", rule)
    assert [episode.outcome for episode in found] == ["passed", "error"]
    assert found[1].reason == "it was not judged to its end: it has no score 'a'"


def test_a_tool_without_verdicts_has_all_scores_in_every_case():
    cases = [{"a": 0.9, "b": 1}, {"b": 1}]
    assert outcomes(cases, "a>=0.5", "binary") == ["passed", "error"]
    assert outcomes(cases, "*>=0.5", "thresholds") == ["passed", "passed"]


def test_a_threshold_decides_about_zeros_and_ones():
    cases = [{"harmful": 1}, {"harmful": 0}]
    assert outcomes(cases, "", "binary") == ["passed", "failed"]
    assert outcomes(cases, "harmful<=0", "binary") == ["failed", "passed"]


def test_zeros_and_ones_are_no_verdicts_of_a_tool_with_verdicts():
    assert outcomes([{"a": 1}, {"a": 0}]) == ["error", "error"]


def test_a_threshold_is_one_more_requirement_for_a_result_that_passed():
    cases = [
        {"outcome": outcome, **scored({"tone": value})}
        for outcome in ("passed", "failed")
        for value in (0.9, 0.1)
    ]
    assert outcomes(cases, "tone>=0.5") == ["passed", "failed", "failed", "failed"]
    assert outcomes(cases) == ["passed", "passed", "failed", "failed"]


@each_row("outcome", ["error", "skipped"])
def test_a_score_does_not_excuse_a_case_that_broke(outcome):
    case = {"outcome": outcome, "reason": "down", **scored({"a": 1, "b": None})}
    (found,) = judge([case], "a>=0.5")
    assert (found.outcome, found.reason, found.assertions) == (outcome, "down", ())
    assert [score.name for score in found.scores] == ["a"]


def test_problems_pass_through_and_names_are_collected():
    names: set[str] = set()
    problem = ImportProblem("is broken")
    items = [problem, {"scenario_id": "a", **scored({"faith": None})}]
    assert [*judge_scores(items, "thresholds", {}, names)][:1] == [problem]
    assert names == {"faith"}


@given(st.lists(st.floats() | st.none(), min_size=1, max_size=5), st.booleans())
def test_only_a_number_on_the_right_side_passes(values, is_maximum):
    rule = "a<=0.5" if is_maximum else "a>=0.5"
    for value, outcome in zip(values, outcomes([{"a": v} for v in values], rule), strict=True):
        is_number = value is not None and abs(value) <= 1e15
        right = is_number and (value <= 0.5 if is_maximum else value >= 0.5)
        assert (outcome == "passed") == right
