"""Scorers of autoevals."""

from __future__ import annotations

import asyncio

import pytest
from autoevals import ExactMatch, JSONDiff, Levenshtein, NumericDiff, ValidJSON
from autoevals.llm import ClosedQA, Factuality
from autoevals.score import Score, Scorer

from ci_agent_eval.checks import as_check, from_evaluator
from ci_agent_eval.checks.evaluator_base import EvaluatorError
from ci_agent_eval.errors import InputError


@pytest.mark.parametrize(
    ("check", "passed", "score"),
    [
        (from_evaluator(ExactMatch(), expected_output="Refunded 39 dollars."), True, 1),
        (from_evaluator(ExactMatch(), expected_output="no"), False, 0),
        (from_evaluator(Levenshtein(), expected_output="Refunded 40 dollars."), False, 0.9),
        (as_check(Levenshtein.partial(expected="Refunded 39 dollars.")()), True, 1),
        (from_evaluator(NumericDiff(), output=30, expected_output=10, threshold=0.5), True, 0.5),
        (from_evaluator(JSONDiff(), output='{"a": 1}', expected_output={"a": 1}), True, 1),
        (as_check(ValidJSON()), False, 0),
    ],
)
def test_scorers(judge, check, passed, score):
    _, was_passed, found, _ = judge(check)
    assert (was_passed, found) == (passed, pytest.approx(score))


class Polite(Scorer):
    """A scorer of a user, with the values that it got."""

    def _run_eval_sync(self, output, expected=None, scores=(1,), **given):
        return Score("polite", *scores, {"rationale": f"{given['input']!r} {output!r}"})


def test_a_scorer_of_a_user(judge, refund):
    name, passed, _, reason = judge(as_check(Polite()))
    assert (name, passed) == ("polite", True)
    assert reason == "1, passes from 1: 'Refund order 1001.\\n\\nYes.' 'Refunded 39 dollars.'"

    async def run():
        return await as_check(Polite()).assertions(refund)

    assert asyncio.run(run())[0].passed
    with pytest.raises(EvaluatorError, match="Polite: it returned null, which is no score"):
        judge(from_evaluator(Polite(), values={"scores": [None]}))
    with pytest.raises(InputError, match="Polite: polite is nan, which is not from 0 to 1"):
        judge(from_evaluator(Polite(), values={"scores": [float("nan")]}))


@pytest.mark.parametrize(
    ("scorer", "missing"),
    [
        (ExactMatch(), r"ExactMatch: it needs expected; give it, .*expected_output=…\)"),
        (JSONDiff(), "it needs expected;"),
        (Factuality(), "Factuality: it needs expected;"),
        (ClosedQA(), "needs criteria; give it, .*values={'criteria': …}"),
    ],
)
def test_missing_values(judge, scorer, missing):
    with pytest.raises(InputError, match=missing):
        judge(as_check(scorer))


def test_a_scorer_that_raises_is_an_error(judge):
    with pytest.raises(EvaluatorError, match="evaluator NumericDiff: TypeError: "):
        judge(from_evaluator(NumericDiff(), expected_output=10))
