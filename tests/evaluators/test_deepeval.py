"""Metrics of DeepEval; a script answers for the model of those that ask one."""

from __future__ import annotations

import asyncio

import pytest
from deepeval.metrics import (
    BaseConversationalMetric,
    ConversationCompletenessMetric,
    ExactMatchMetric,
    PatternMatchMetric,
    ToolCorrectnessMetric,
)
from deepeval.models import DeepEvalBaseLLM
from deepeval.test_case import ToolCall, ToolCallParams

from ci_agent_eval.checks import as_check, from_evaluator
from ci_agent_eval.checks.evaluator_base import EvaluatorError
from ci_agent_eval.errors import InputError

ANSWERS = {
    "UserIntentions": {"intentions": ["a refund"]},
    "ConversationCompletenessVerdict": {"verdict": "yes", "reason": "done"},
    "ConversationCompletenessScoreReason": {"reason": "all done"},
}


class ScriptedModel(DeepEvalBaseLLM):
    def __init__(self, answers):
        self.answers, self.prompts = answers, []
        super().__init__("scripted")

    def load_model(self):
        return self

    def get_model_name(self):
        return "scripted"

    def generate(self, prompt, schema):
        self.prompts.append(prompt)
        return schema(**self.answers[schema.__name__])

    async def a_generate(self, prompt, schema):
        return self.generate(prompt, schema)


def test_a_metric_of_one_answer(judge):
    assert judge(as_check(PatternMatchMetric(r"Refunded \d+ dollars\."))) == (
        "Pattern Match",
        True,
        1,
        "1, threshold 1: The actual output fully matches the pattern.",
    )
    exact = ExactMatchMetric()
    assert judge(from_evaluator(exact, expected_output="Refunded 39 dollars."))[1] is True
    assert judge(from_evaluator(exact, expected_output="no"))[1:3] == (False, 0)
    assert exact.score is None  # episodes may share it


@pytest.mark.parametrize(("usd", "score"), [(39, 1), (40, 0.75)])
def test_tool_calls(judge, usd, score):
    metric = ToolCorrectnessMetric(
        model=ScriptedModel({}), evaluation_params=[ToolCallParams.INPUT_PARAMETERS], threshold=0.8
    )
    expected = [
        ToolCall(name="find_order", input_parameters={"id": 1001}),
        ToolCall(name="refund", input_parameters={"id": 1001, "usd": usd}),
    ]
    found = judge(from_evaluator(metric, values={"expected_tools": expected}))
    assert found[1:3] == (score == 1, score)
    lower = from_evaluator(metric, values={"expected_tools": expected}, threshold=0.5)
    assert judge(lower)[1] is True


@pytest.mark.parametrize("async_mode", [True, False])
def test_a_metric_of_a_conversation_that_asks_a_model(judge, async_mode):
    model = ScriptedModel(ANSWERS)
    metric = ConversationCompletenessMetric(model=model, async_mode=async_mode)
    name, passed, score, reason = judge(as_check(metric))
    assert (name, passed, score) == ("Conversation Completeness", True, 1)
    assert reason == "1, threshold 0.5: all done"
    assert "Refund order 1001." in model.prompts[0]


class Tools(BaseConversationalMetric):
    """A metric of a user: the share of replies with this tool call."""

    def __init__(self, call):
        self.call = call

    async def a_measure(self, test_case):
        replies = [turn for turn in test_case.turns if turn.role == "assistant"]
        self.score = sum(self.call in turn.tools_called for turn in replies) / len(replies)


def test_a_metric_of_a_user_gets_the_tools_called(judge):
    call = ToolCall(name="refund", input_parameters={"id": 1001, "usd": 39}, output="down")
    found = judge(from_evaluator(Tools(call), threshold=0.5))
    assert found[1:] == (True, 0.5, "0.5, threshold 0.5")
    assert judge(as_check(Tools(call)))[1:] == (False, 0.5, "0.5, passes from 1")


def test_async_code_awaits_it(refund):
    async def run():
        return await as_check(PatternMatchMetric("no")).assertions(refund)

    (found,) = asyncio.run(run())
    assert not found.passed


def test_errors(judge):
    with pytest.raises(InputError, match=r"Exact Match: 'expected_output' cannot be None .*; give"):
        judge(as_check(ExactMatchMetric()))
    with pytest.raises(InputError, match="did you mean 'retrieval_context'"):
        judge(from_evaluator(ExactMatchMetric(), values={"retrieval_contexts": []}))
    broken = ConversationCompletenessMetric(model=ScriptedModel({}))
    with pytest.raises(EvaluatorError, match="evaluator Conversation Completeness: KeyError"):
        judge(as_check(broken))
