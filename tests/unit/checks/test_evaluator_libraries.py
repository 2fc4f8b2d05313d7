"""Evaluators of other libraries, by classes of the same shape; `make evaluators` runs the real ones."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from ci_agent_eval.checks import as_check, from_evaluator
from ci_agent_eval.checks.conversion import find_adapter
from ci_agent_eval.checks.evaluator_base import EvaluatorError
from ci_agent_eval.checks.library_adapters import build_openai_messages
from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic import attribution
from tests.builders import talk, tool_call, turn

FAILED = tool_call("refund", id="r1", arguments={"usd": 5}, result=None, error="down")
DONE = talk(
    "refund it",
    turn("", tool_calls=[tool_call("find", result={"usd": 5}), FAILED]),
    turn("Shall I?"),
    "Yes.",
    turn("Refunded."),
)

MESSAGES = ModuleType("ragas.messages")


def one(check, episode=DONE):
    (found,) = check.assertions(episode)
    return found.name, found.passed, found.score, found.reason


def fail(error):
    raise error


class Scorer:
    """As `autoevals.score.Scorer`."""

    __module__ = "autoevals.score"
    was_awaited = False

    def __init__(self, **scored):
        self.scored = {"name": "fit", "metadata": {}, "error": None, **scored}

    def _name(self):
        return type(self).__name__

    def eval(self, output, expected=None, **given):
        self.saw = {"output": output, "expected": expected, **given}
        self.is_uncounted = attribution._is_uncounted.get()
        return self._run_eval_sync(output, expected)

    async def eval_async(self, output, expected=None, **given):
        self.was_awaited = True
        return self.eval(output, expected, **given)

    def _run_eval_sync(self, output, expected=None):
        return SimpleNamespace(**self.scored)


class BaseMetric:
    """As `deepeval.metrics.BaseMetric`."""

    __module__ = "deepeval.metrics.base_metric"
    __name__ = "Fit"
    async_mode = True
    threshold = score = reason = None

    def is_successful(self):
        return self.score >= self.threshold


class Metric(BaseMetric):
    def __init__(self, measure=lambda case: 0.5, threshold=0.4):
        self.threshold, self.of = threshold, measure

    def measure(self, case):
        self.score = self.of(case)

    async def a_measure(self, case, _show_indicator=True):
        assert not _show_indicator
        self.measure(case)


class Case(BaseModel):
    """As `deepeval.test_case.LLMTestCase` and `ConversationalTestCase`."""

    input: str = ""
    actual_output: str | None = None
    expected_output: str | None = None
    tools_called: Any = None
    retrieval_context: Any = None
    metadata: Any = None
    turns: Any = None
    expected_outcome: str | None = None


@pytest.fixture
def deepeval(monkeypatch):
    module = ModuleType("deepeval.test_case")
    module.LLMTestCase = module.ConversationalTestCase = Case
    module.ToolCall = module.Turn = lambda **given: given
    monkeypatch.setitem(sys.modules, "deepeval", ModuleType("deepeval"))
    monkeypatch.setitem(sys.modules, module.__name__, module)


class SimpleBaseMetric:
    """As `ragas.metrics.base.SimpleBaseMetric`."""

    __module__ = "ragas.metrics.base"
    name = "fit"

    async def ascore(self, response, reference, retrieved_contexts=None):
        return SimpleNamespace(value=float(reference in response), reason=retrieved_contexts)


class MultiTurnMetric:
    """As `ragas.metrics.base.MultiTurnMetric`."""

    __module__ = "ragas.metrics.base"
    name = "calls"
    required_columns: Any = {"MULTI_TURN": {"user_input", "reference_tool_calls"}}  # noqa: RUF012

    async def multi_turn_ascore(self, sample):
        made = [call for said in sample.user_input for call in said.get("tool_calls") or ()]
        return float(made == sample.reference_tool_calls)


class Sample(BaseModel):
    """As `ragas.dataset_schema.MultiTurnSample`."""

    user_input: Any
    reference_tool_calls: Any = None


def function(module="openevals.exact", answer=True, name="exact_match"):
    def evaluate(*, outputs, reference_outputs, **kwargs):
        found = answer if isinstance(answer, list) else [answer]
        scores = [{"key": "fit", "score": score, "comment": None} for score in found]
        return scores if isinstance(answer, list) else scores[0]

    evaluate.__module__, evaluate.__name__, evaluate.__qualname__ = module, name, name
    return evaluate


@pytest.mark.parametrize(
    ("module", "name", "adapter"),
    [
        ("deepeval.metrics.base_metric", "BaseConversationalMetric", "DeepEvalCheck"),
        ("ragas.metrics.base", "MultiTurnMetric", "RagasCheck"),
        ("ragas.metrics.base", "SimpleBaseMetric", "RagasCheck"),
    ],
)
def test_an_evaluator_is_found_by_the_module_of_its_class_or_of_a_base(module, name, adapter):
    kind = type(name, (), {"__module__": module})
    own = type("Mine", (kind,), {"__module__": "my_bank.metrics"})
    for value in (kind(), own()):
        assert find_adapter(value) == type(as_check(value)).__name__ == adapter
    assert as_check(kind) is None
    assert module.partition(".")[0] not in sys.modules


def test_other_values_are_none():
    kind = type("Scorer", (), {"__module__": "autoevals_mine.score"})
    for value in (kind(), lambda: True, print, 1, function("my.openevals")):
        assert as_check(value) is None
    with pytest.raises(InputError, match="from_evaluator: 5 is no Evaluator"):
        from_evaluator(5)


def test_a_score_passes_from_the_threshold_on():
    assert one(as_check(Scorer(score=0.5))) == ("fit", False, 0.5, "0.5, passes from 1")
    near = Scorer(score=0.5, metadata={"rationale": "near"})
    found = one(from_evaluator(near, threshold=0.5, name="near it"))
    assert found == ("near it", True, 0.5, "0.5, passes from 0.5: near")
    assert one(from_evaluator(Scorer(score=4), threshold=3, scale=(1, 5)))[1:3] == (True, 0.75)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, 1.1])
def test_a_score_outside_the_scale_is_an_error(score):
    with pytest.raises(InputError, match=r"Scorer: fit is .* not from 0 to 1; give its scale"):
        one(as_check(Scorer(score=score)))


@pytest.mark.parametrize("score", [None, "good", [1]])
def test_no_score_is_an_error(score):
    with pytest.raises(EvaluatorError, match=r"evaluator Scorer: it returned .* is no score"):
        one(as_check(Scorer(score=score)))


def test_values_of_a_scorer_and_its_model_calls_are_not_the_agent_s():
    scorer = Scorer(score=1)
    one(from_evaluator(scorer, expected_output="x", values={"context": "c"}))
    assert scorer.saw == {
        "input": "refund it\n\nYes.",
        "output": "Refunded.",
        "expected": "x",
        "context": "c",
    }
    assert scorer.is_uncounted
    assert not scorer.was_awaited


def test_a_template_without_its_value_is_an_error():
    scorer = Scorer(score=1)
    scorer.messages = [{"content": "{{#expected}}…{{/expected}} {{input}} {{{criteria}}} {{tone}}"}]
    scorer.render_args = {"tone": "kind"}
    with pytest.raises(InputError, match=r"needs criteria; give it, .*values={'criteria': …}\)$"):
        one(as_check(scorer))


def test_a_test_case_of_one_answer(deepeval):
    seen = []
    metric = Metric(lambda case: seen.append(case) or 0.5)
    check = from_evaluator(metric, expected_output={"usd": 5}, values={"retrieval_context": ["c"]})
    assert one(check) == ("Fit", True, 0.5, "0.5, threshold 0.4")
    assert metric.score is None
    (case,) = seen
    assert (case.input, case.actual_output) == ("refund it\n\nYes.", "Refunded.")
    assert (case.expected_output, case.retrieval_context) == ('{"usd": 5}', ["c"])
    assert case.tools_called == [
        {"name": "find", "input_parameters": {"order_id": 1001}, "output": '{"usd": 5}'},
        {"name": "refund", "input_parameters": {"usd": 5}, "output": "down"},
    ]


def test_thresholds_of_a_metric(deepeval):
    assert one(from_evaluator(Metric(), threshold=0.6))[1] is False
    assert one(as_check(Metric(threshold=None)))[1::2] == (False, "0.5, passes from 1")


def test_a_test_case_of_a_conversation(deepeval):
    seen = []
    base = type("BaseConversationalMetric", (Metric,), {"__module__": "deepeval.metrics"})
    one(from_evaluator(base(lambda case: seen.append(case) or 1), expected_output="a refund"))
    assert seen[0].expected_outcome == "a refund"
    assert [(each["role"], each["content"]) for each in seen[0].turns] == [
        ("user", "refund it"),
        ("assistant", "Shall I?"),
        ("user", "Yes."),
        ("assistant", "Refunded."),
    ]
    assert [called["name"] for called in seen[0].turns[1]["tools_called"]] == ["find", "refund"]


def test_errors_of_a_metric(deepeval):
    missing = type("MissingTestCaseParamsError", (Exception,), {})("'context' cannot be None")
    with pytest.raises(InputError, match="evaluator Fit: 'context' cannot be None; give it, "):
        one(as_check(Metric(lambda _: fail(missing))))
    with pytest.raises(EvaluatorError, match="evaluator Fit: ConnectionError: no network"):
        one(as_check(Metric(lambda _: fail(ConnectionError("no network")))))
    with pytest.raises(InputError, match=r"unknown key 'retrieval'; did you mean 'retrieval_con"):
        one(from_evaluator(Metric(), values={"retrieval": []}))


def test_async_code_awaits_what_waits(deepeval):
    async def run():
        exact = from_evaluator(function(), expected_output="x").assertions(DONE)
        metric = await as_check(Metric()).assertions(DONE)
        return [*exact, *metric, *await as_check(scorer).assertions(DONE)]

    scorer = Scorer(score=1)
    assert [found.passed for found in asyncio.run(run())] == [True] * 3
    assert scorer.was_awaited


def test_a_function_of_an_answer():
    assert one(from_evaluator(function(), expected_output="x")) == ("fit", True, 1, "true")
    found = from_evaluator(function(answer=[False, 1.0]), expected_output="x").assertions(DONE)
    assert [each.passed for each in found] == [False, True]
    with pytest.raises(EvaluatorError, match="exact_match: it returned no score"):
        from_evaluator(function(answer=[]), expected_output="x").assertions(DONE)
    with pytest.raises(InputError, match=r"exact_match: it needs reference_outputs; give it, "):
        one(as_check(function()))
    with pytest.raises(InputError, match=r"create_judge: it makes an evaluator; call it"):
        one(as_check(function(name="create_judge")))


def test_a_metric_of_named_arguments():
    found = from_evaluator(
        SimpleBaseMetric(), expected_output="Refund", values={"retrieved_contexts": "why"}
    )
    assert one(found) == ("fit", True, 1, "1, passes from 1: why")
    with pytest.raises(InputError, match=r"fit: it needs reference; give it, .*expected_output"):
        one(as_check(SimpleBaseMetric()))
    with pytest.raises(InputError, match=r"'contexts'; did you mean 'retrieved_contexts'"):
        one(from_evaluator(SimpleBaseMetric(), values={"contexts": []}))


def test_a_metric_of_messages(monkeypatch):
    for name in ("HumanMessage", "AIMessage", "ToolMessage", "ToolCall"):
        monkeypatch.setattr(MESSAGES, name, lambda **given: given, raising=False)
    monkeypatch.setitem(sys.modules, "ragas", ModuleType("ragas"))
    monkeypatch.setitem(sys.modules, "ragas.messages", MESSAGES)
    monkeypatch.setitem(
        sys.modules, "ragas.dataset_schema", SimpleNamespace(MultiTurnSample=Sample)
    )
    calls = [
        {"name": "find", "args": {"order_id": 1001}},
        {"name": "refund", "args": {"usd": 5}},
    ]
    found = from_evaluator(MultiTurnMetric(), values={"reference_tool_calls": calls})
    assert one(found) == ("calls", True, 1, "1, passes from 1")
    with pytest.raises(InputError, match="needs reference_tool_calls; give it"):
        one(as_check(MultiTurnMetric()))


def test_messages_of_a_trajectory():
    messages = list(build_openai_messages(DONE))
    assert [message["role"] for message in messages] == [
        *("user", "assistant", "tool", "tool", "assistant", "user", "assistant")
    ]
    first, second = messages[1]["tool_calls"]
    assert first["function"] == {"name": "find", "arguments": '{"order_id": 1001}'}
    assert (messages[2]["tool_call_id"], messages[2]["content"]) == (first["id"], '{"usd": 5}')
    assert (messages[3]["tool_call_id"], second["id"]) == ("r1", "r1")
    assert messages[3]["content"] == "down"
