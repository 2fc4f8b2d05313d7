"""Thresholds of scores: rules as a text, or a table of limits."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.result_mapping import ScoreThreshold, parse_score_thresholds
from tests.tables import each_row

AT_LEAST = ScoreThreshold(0.8)
AT_MOST = ScoreThreshold(0.2, is_maximum=True)


@each_row(
    "value",
    [
        "faith>=0.8 noise<=0.2",
        "'faith >= 0.8'\n\"noise<= 0.2\"",
        {"faith": 0.8, "noise": "<= 0.2"},
        {"faith": ">=0.8", "noise": "<=2e-1"},
        {"faith": AT_LEAST, "noise": AT_MOST},
    ],
)
def test_rules_and_tables_say_the_same(value):
    assert parse_score_thresholds(value) == {"faith": AT_LEAST, "noise": AT_MOST}


def test_any_name_may_have_a_threshold():
    text = "'exact_match,strict match>=1' judge/tone>=0.5 *>=0"
    assert list(parse_score_thresholds(text)) == ["exact_match,strict match", "judge/tone", "*"]


@each_row(
    ("value", "message"),
    [
        ("faith", "'faith' is not a threshold; write NAME>=NUMBER"),
        ("faith=0.8", "is not a threshold"),
        ("faith>0.8", "is not a threshold"),
        (">=0.8", "is not a threshold"),
        ("faith>=", "is not a threshold"),
        ("faith>=high", "faith: '>=high' is not a finite number"),
        ("faith>=nan", "not a finite number"),
        ("faith<=inf", "not a finite number"),
        ("a>=1 a<=2", "'a' has two thresholds"),
        ("'a>=1", "No closing quotation"),
        ({"a": True}, "a: True is not a limit"),
        ({"a": None}, "is not a limit"),
        ({"a": "b>=1"}, "is not a limit"),
        ({"a": float("nan")}, "not a finite number"),
    ],
)
def test_a_wrong_rule_is_refused(value, message):
    with pytest.raises(ValueError, match=message.replace("'", ".")):
        parse_score_thresholds(value)


def test_a_limit_itself_is_accepted():
    assert [AT_LEAST.accepts(value) for value in (0.79, 0.8, 0.81)] == [False, True, True]
    assert [AT_MOST.accepts(value) for value in (0.19, 0.2, 0.21)] == [True, True, False]
    assert (str(AT_LEAST), str(AT_MOST)) == ("at least 0.8", "at most 0.2")
