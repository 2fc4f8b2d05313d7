"""Metrics of ragas: those of samples, and those of its collections."""

from __future__ import annotations

import asyncio

import pytest
from ragas.messages import ToolCall
from ragas.metrics import ExactMatch, NonLLMStringSimilarity, ToolCallAccuracy, collections
from ragas.metrics import NonLLMContextPrecisionWithReference as ContextPrecision
from ragas.metrics.numeric import numeric_metric

from ci_agent_eval.checks import as_check, from_evaluator
from ci_agent_eval.checks.evaluator_base import EvaluatorError
from ci_agent_eval.errors import InputError

CALLS = [
    ToolCall(name="find_order", args={"id": 1001}),
    ToolCall(name="refund", args={"id": 1001, "usd": 39}),
]


@pytest.mark.parametrize("metric", [ExactMatch(), collections.ExactMatch()])
def test_a_metric_of_one_answer(judge, metric):
    exact = from_evaluator(metric, expected_output="Refunded 39 dollars.")
    assert judge(exact) == ("exact_match", True, 1, "1, passes from 1")
    assert judge(from_evaluator(metric, expected_output="no"))[1:3] == (False, 0)


def test_a_score_passes_from_the_threshold_on(judge):
    near = {"expected_output": "Refunded 40 dollars.", "threshold": 0.8}
    name, passed, score, reason = judge(from_evaluator(NonLLMStringSimilarity(), **near))
    assert (name, passed, score) == ("non_llm_string_similarity", True, 0.9)
    assert reason == "0.9, passes from 0.8"


@pytest.mark.parametrize("metric", [ToolCallAccuracy(), collections.ToolCallAccuracy()])
def test_tool_calls_of_the_conversation(judge, metric):
    assert judge(from_evaluator(metric, values={"reference_tool_calls": CALLS}))[1:3] == (True, 1)
    other = [CALLS[0], ToolCall(name="refund", args={"id": 1001, "usd": 40})]
    assert judge(from_evaluator(metric, values={"reference_tool_calls": other}))[1:3] == (
        False,
        0.75,
    )


def test_contexts_are_given(judge):
    contexts = {"retrieved_contexts": ["order 1001"], "reference_contexts": ["order 1001"]}
    assert judge(from_evaluator(ContextPrecision(), values=contexts, threshold=0.99))[1] is True


def test_a_metric_made_of_a_function(judge):
    @numeric_metric(name="brevity", allowed_values=(0, 1))
    def brevity(response: str) -> float:
        return 1 / len(response.split())

    assert judge(from_evaluator(brevity, threshold=0.3))[:2] == ("brevity", True)

    @numeric_metric(name="broken", allowed_values=(0, 1))
    def broken(response: str) -> float:
        raise ValueError(response)

    with pytest.raises(EvaluatorError, match=r"broken: it returned null, which is no score: Error"):
        judge(as_check(broken))


def test_async_code_awaits_it(refund):
    async def run():
        check = from_evaluator(collections.StringPresence(), expected_output="39")
        return await check.assertions(refund)

    assert asyncio.run(run())[0].passed


@pytest.mark.parametrize(
    ("metric", "missing"),
    [
        (ExactMatch(), r"exact_match: it needs reference; give it, .*expected_output=…\)"),
        (collections.ExactMatch(), "it needs reference;"),
        (ToolCallAccuracy(), "needs reference_tool_calls; .*values={'reference_tool_calls': …}"),
        (ContextPrecision(), "it needs reference_contexts, retrieved_contexts; give"),
    ],
)
def test_missing_values(judge, metric, missing):
    with pytest.raises(InputError, match=missing):
        judge(as_check(metric))
