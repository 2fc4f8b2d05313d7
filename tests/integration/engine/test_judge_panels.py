"""Panels and dimensions: what the votes decide, and the record of each."""

from __future__ import annotations

import pytest

from ci_agent_eval.checks import DimensionRubric, Rubric, ScoringDimension
from ci_agent_eval.checks.judge_questions import JudgeError
from ci_agent_eval.errors import InputError
from tests.builders import talk, turn
from tests.scripted_judges import apply_check, grade, grades, judge_in_turn
from tests.tables import each_row

SAID = talk("Where is my order?", turn("It comes on Monday."))
DIMENSIONS = [ScoringDimension("accuracy", "It is true."), ScoringDimension("tone", "Kind.", 10, 3)]


def panel(*verdicts):
    return [judge_in_turn(grade(v), name=f"judge-{i}") for i, v in enumerate(verdicts, 1)]


@each_row(
    ("verdicts", "needed", "passed"),
    [
        ([True, True, False], None, True),
        ([True, False, False], None, False),
        ([True, False], None, False),  # a tie is no majority
        ([True, True, False], 3, False),
        ([True, False, False], 1, True),
    ],
)
def test_the_votes_of_a_panel_decide(verdicts, needed, passed):
    check = Rubric("It is kind.", panel(*verdicts), votes_needed=needed)
    (found,) = apply_check(check, SAID)
    assert found.passed is passed
    assert found.score == pytest.approx(sum(verdicts) / len(verdicts))
    votes = [(vote.judge.rpartition(":")[2], vote.passed) for vote in found.votes]
    assert votes == [(f"judge-{i}", v) for i, v in enumerate(verdicts, 1)]
    assert found.reason.startswith(f"{sum(verdicts)} of {len(verdicts)} votes pass")


def test_each_vote_passes_by_its_score_with_a_threshold():
    judge = judge_in_turn(grade(score=0.9), grade(score=0.6), grade(score=0.8))
    (found,) = apply_check(Rubric("It is kind.", judge, repeats=3, threshold=0.7), SAID)
    assert [(v.repeat, v.passed, v.score) for v in found.votes] == [
        (1, True, 0.9),
        (2, False, 0.6),
        (3, True, 0.8),
    ]
    assert (found.passed, found.score) == (True, pytest.approx(0.7667, abs=1e-4))


def test_a_panel_with_a_broken_judge_is_an_error_and_no_score():
    broken = judge_in_turn({"reason": "?"}, {"reason": "?"}, {"reason": "?"})
    with pytest.raises(JudgeError, match="nothing about the agent"):
        apply_check(Rubric("It is kind.", [*panel(True, True), broken]), SAID)


def test_dimensions_are_assertions_with_their_grades():
    judge = judge_in_turn(grades(accuracy=4, tone=5))
    check = DimensionRubric(DIMENSIONS, judge, threshold=0.5, minimum={"accuracy": 5}, name="reply")
    found = apply_check(check, SAID)
    assert [(a.name, a.passed, a.score) for a in found] == [
        ("reply: grade: accuracy", False, 0.8),
        ("reply: grade: tone", True, 0.5),
        ("reply: grades: accuracy, tone", True, pytest.approx((0.8 + 3 * 0.5) / 4)),
    ]
    assert found[0].reason == "4 of 5, passes from 5; accuracy is 4"


@each_row(
    ("answer", "says"),
    [
        (grades(accuracy=4), "not each dimension once"),
        (grades(accuracy=4, tone=11), "its grade for tone is 11, and not from 1 to 10"),
        (grades(accuracy=0, tone=1), "its grade for accuracy is 0, and not from 1 to 5"),
    ],
)
def test_grades_that_are_none_are_an_error(answer, says):
    with pytest.raises(JudgeError, match=says):
        apply_check(DimensionRubric(DIMENSIONS, judge_in_turn(answer), threshold=0.5), SAID)


@each_row(
    ("build", "sentence"),
    [
        (lambda: Rubric("x", []), r"Rubric\.model: name at least one judge"),
        (lambda: Rubric("x", ["a", "b"], votes_needed=3), "there are 2 votes, so 3 never pass"),
        (lambda: Rubric("x", "a", repeats=0), r"Rubric\.repeats: must be a whole number"),
        (lambda: DimensionRubric(DIMENSIONS, "a"), "it is given nothing to check"),
        (lambda: DimensionRubric([], "a", threshold=0.5), "one or more ScoringDimensions"),
        (lambda: DimensionRubric([DIMENSIONS[0]] * 2, "a", threshold=0.5), "different names"),
        (lambda: DimensionRubric(DIMENSIONS, "a", minimum={"x": 2}), r"minimum\['x'\]"),
        (lambda: DimensionRubric(DIMENSIONS, "a", minimum={"tone": 11}), r"minimum\['tone'\]"),
        (lambda: ScoringDimension("x", "y", max_score=1), "max_score must be at least 2"),
    ],
)
def test_a_check_that_means_nothing_is_refused(build, sentence):
    with pytest.raises(InputError, match=sentence):
        build()
