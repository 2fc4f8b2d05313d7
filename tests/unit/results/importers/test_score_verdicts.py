"""Imported results that are judged by their scores, as a reviewer reads them."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.result_mapping import parse_score_thresholds
from ci_agent_eval.results.importers.score_verdicts import judge_scores
from ci_agent_eval.results.importers.values import ImportProblem, build_score


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


def ended(*outcomes):
    return [
        {"outcome": o, "reason": "down", **scored({"tone": v})}
        for o in outcomes
        for v in (0.9, 0.1, None)
    ]


NO_NUMBERS = [{"a": v, "b": 1} for v in (0.9, math.nan, math.inf, -math.inf, None, "0.9", [], 10**300)]  # fmt: skip
PARTLY = [{"a": 0.9, "b": 1}, {"b": 1}]
ZEROS = [{"harmful": 1}, {"harmful": 0}]
CASES = {
    # what is judged: (cases, thresholds, rule)
    "a threshold": ([{"faith": 0.8}, {"faith": 0.79}], "faith>=0.8"),
    "scores beyond one": ([{"stars": 4}, {"stars": 3}], "stars>=3.5"),
    "every other score": ([{"a": 0.6, "b": 0.6}], "a>=0.7 *>=0.5"),
    "no threshold": ([{"a": 0.93, "b": 1, "c": 1, "d": 1}],),
    "no numbers": (NO_NUMBERS, "a>=0.5 b>=1"),
    "no numbers, of a tool without verdicts": (NO_NUMBERS, "a>=0.5 b>=1", "binary"),
    "a score that is not there": (PARTLY, "*>=0.5"),
    "a score that is not there, of a tool without verdicts": (PARTLY, "a>=0.5", "binary"),
    "zeros and ones": (ZEROS,),
    "zeros and ones of a tool without verdicts": (ZEROS, "", "binary"),
    "a threshold for zeros and ones": (ZEROS, "harmful<=0", "binary"),
    "an outcome, too": (ended("passed", "failed", "error", "skipped"), "tone>=0.5"),
    "an outcome without a threshold": (ended("passed", "failed"),),
}


def describe(name, *given):
    lines = [f"{name}:"]
    for one in judge(*given):
        lines.append(f"  {one.scenario_id}: {one.outcome}, {one.reason}")
        lines += [f"    {a.name}: {a.passed}, {a.score}, {a.reason}" for a in one.assertions]
        lines += [f"    {score.name} is {score.value}" for score in one.scores]
    return "\n".join(lines)


def test_what_scores_come_to_is_the_golden_text(golden):
    text = "\n".join(describe(name, *given) for name, given in CASES.items())
    golden("importers/score_verdicts.txt", f"{text}\n")


def test_problems_pass_through_and_names_are_collected():
    names: set[str] = set()
    problem = ImportProblem("is broken")
    items = [problem, {"scenario_id": "a", **scored({"faith": None})}]
    assert [*judge_scores(items, "thresholds", {}, names)][:1] == [problem]
    assert names == {"faith"}


@given(st.lists(st.floats() | st.none(), min_size=1, max_size=5), st.booleans())
def test_only_a_number_on_the_right_side_passes(values, is_maximum):
    found = judge([{"a": v} for v in values], "a<=0.5" if is_maximum else "a>=0.5")
    for value, one in zip(values, found, strict=True):
        is_number = value is not None and abs(value) <= 1e15
        right = is_number and (value <= 0.5 if is_maximum else value >= 0.5)
        assert (one.outcome == "passed") == right
