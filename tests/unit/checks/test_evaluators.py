"""Evaluators of pydantic-evals as checks: theirs, and ones of a user's own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_evals.evaluators import (
    ArgumentCorrectness,
    Contains,
    Equals,
    EqualsExpected,
    EvaluationReason,
    Evaluator,
    EvaluatorContext,
    HasMatchingSpan,
    IsInstance,
    MaxDuration,
    MaxModelRequests,
    MaxToolCalls,
    ToolCorrectness,
    TrajectoryMatch,
)

from ci_agent_eval.checks import from_evaluator
from ci_agent_eval.checks.evaluators import EvaluatorError
from ci_agent_eval.errors import InputError
from tests.builders import talk, tool_call, turn
from tests.tables import each_row

FAILED = tool_call("refund", arguments={"usd": 5}, result=None, error="down")
DONE = talk(
    "refund it",
    turn("", tool_calls=[tool_call("find"), FAILED], latency_ms=900, cost_usd=0.01),
    turn("", tool_calls=[tool_call("refund", arguments={"usd": 5})], latency_ms=1000),
    turn("Refunded.", latency_ms=100, tokens={"input": 10, "output": 5}),
    model="openai:gpt-5-mini",
    metadata={"tier": "gold"},
)


@dataclass
class Says(Evaluator):
    """Returns what it is told to return, and keeps what it saw."""

    what: Any

    def evaluate(self, ctx: EvaluatorContext) -> Any:
        self.saw = ctx
        return self.what


@dataclass
class SaysLater(Evaluator):
    what: Any

    async def evaluate(self, ctx: EvaluatorContext) -> Any:
        await asyncio.sleep(0)
        if isinstance(self.what, Exception):
            raise self.what
        return self.what


def found(evaluator, episode=DONE, **options):
    return from_evaluator(evaluator, **options).assertions(episode)


def one(evaluator, episode=DONE, **options):
    (assertion,) = found(evaluator, episode, **options)
    return assertion.passed, assertion.score, assertion.reason


@each_row(
    ("evaluator", "passed"),
    [
        (ToolCorrectness(["find", "refund"]), True),
        (ToolCorrectness(["find"]), False),
        (ToolCorrectness(["find", "refund", "refund"], include_failed=True), True),
        (TrajectoryMatch(["find", "refund"], order="exact"), True),
        (TrajectoryMatch(["refund", "find"], order="exact"), False),
        (TrajectoryMatch(["refund", "find"], order="any_order"), True),
        (ArgumentCorrectness("refund", {"usd": 5}), True),
        (ArgumentCorrectness("refund", {"usd": 6}), False),
        (ArgumentCorrectness("find", {"order_id": 1001}, match_mode="exact"), True),
        (MaxToolCalls(3), True),
        (MaxToolCalls(2), False),
        (MaxToolCalls(2, include_failed=False), True),
        (MaxModelRequests(3), True),
        (MaxModelRequests(2), False),
        (MaxDuration(2.0), True),
        (MaxDuration(1.9), False),
        (Contains("Refunded"), True),
        (Equals("Refunded."), True),
        (Equals("refunded"), False),
        (IsInstance("str"), True),
        (HasMatchingSpan({"name_equals": "execute_tool refund", "has_status": "error"}), True),
        (HasMatchingSpan({"has_attributes": {"gen_ai.usage.input_tokens": 10}}), True),
        (HasMatchingSpan({"name_contains": "chat", "min_duration": 1.5}), False),
        (HasMatchingSpan({"name_equals": "invoke_agent", "min_duration": 1.9}), True),
    ],
)
def test_their_own_evaluators_read_our_trajectory(evaluator, passed):
    assert one(evaluator)[0] is passed


@each_row(
    ("what", "said"),
    [
        (True, (True, 1, 'true of "Refunded."')),
        (False, (False, 0, 'false of "Refunded."')),
        (EvaluationReason(False, "too short"), (False, 0, "too short")),
        (EvaluationReason(True), (True, 1, 'true of "Refunded."')),
        (1, (True, 1, "1, passes from 1")),
        (0.25, (False, 0.25, "0.25, passes from 1")),
        (EvaluationReason(0.5, "half"), (False, 0.5, "0.5, passes from 1: half")),
        ("polite", (True, 1, '"polite"')),
        (EvaluationReason("rude", "it shouts"), (True, 1, '"rude": it shouts')),
    ],
)
def test_results_of_any_kind(what, said):
    assert one(Says(what)) == said
    (later,) = asyncio.run(awaited(SaysLater(what)))
    assert (later.passed, later.score, later.reason) == said


async def awaited(evaluator, **options):
    return await found(evaluator, **options)


def test_several_results_are_several_assertions():
    results = found(Says({"kind": True, "fit": 0.5, "tone": EvaluationReason("dry", "why")}))
    assert [(a.name, a.passed, a.score) for a in results] == [
        ("kind", True, 1),
        ("fit", False, 0.5),
        ("tone", True, 1),
    ]


@each_row(
    ("value", "options", "said"),
    [
        (4, {"scale": (1, 5)}, (False, 0.75, "4, passes from 5")),
        (4, {"scale": (1, 5), "threshold": 4}, (True, 0.75, "4, passes from 4")),
        (2, {"scale": (1, 5), "threshold": 1.5}, (True, 0.25, "2, passes from 1.5")),
        (0.6, {"threshold": 0.6}, (True, 0.6, "0.6, passes from 0.6")),
    ],
)
def test_numbers_on_another_scale(value, options, said):
    assert one(Says(value), **options) == said


@each_row("options", [{"threshold": 0}, {"scale": (1, 5), "threshold": 1}])
def test_a_threshold_that_everything_reaches_is_refused(options):
    with pytest.raises(InputError, match="is the bottom of the scale, which everything reaches"):
        one(Says(0.5), **options)


@each_row("value", [4, -0.1])
def test_a_number_off_its_scale_asks_for_one(value):
    with pytest.raises(InputError, match=r"is not from 0 to 1; give its scale"):
        one(Says(value))


def test_the_context_is_the_episode():
    evaluator = Says(True)
    one(evaluator)
    saw = evaluator.saw
    assert (saw.name, saw.inputs, saw.output) == ("refund", "refund it", "Refunded.")
    assert (saw.metadata, saw.expected_output, saw.duration) == ({"tier": "gold"}, None, 2.0)
    assert saw.metrics == {"requests": 3}  # not every turn was measured
    names = [node.name for node in saw.span_tree]
    assert names == [
        "invoke_agent",
        "chat openai:gpt-5-mini",
        "execute_tool find",
        "execute_tool refund",
        "chat openai:gpt-5-mini",
        "execute_tool refund",
        "chat openai:gpt-5-mini",
    ]


def test_figures_that_were_measured_throughout_are_metrics():
    evaluator = Says(True)
    usage = {"tokens": {"input": 10, "output": 5}, "cost_usd": 0.5}
    one(evaluator, talk("a", turn("b", **usage), "c", turn("d", **usage)))
    assert evaluator.saw.metrics == {
        "requests": 2,
        "input_tokens": 20,
        "output_tokens": 10,
        "cost": 1.0,
    }
    assert evaluator.saw.inputs == ["a", "c"]


def test_parts_of_the_context_may_be_given():
    evaluator = Says(True)
    one(evaluator, inputs=1, output=2, expected_output=3, metadata=4)
    saw = evaluator.saw
    assert (saw.inputs, saw.output, saw.expected_output, saw.metadata) == (1, 2, 3, 4)
    assert one(EqualsExpected(), expected_output="Refunded.")[0]
    assert not one(EqualsExpected(), expected_output="no")[0]


def test_an_evaluator_that_has_nothing_to_compare_with_does_not_pass():
    with pytest.raises(InputError, match=r"EqualsExpected: it returned nothing to check"):
        one(EqualsExpected())


def test_a_time_that_was_not_measured_keeps_no_limit():
    with pytest.raises(EvaluatorError, match=r"MaxDuration: .*the agent's time was not measured"):
        one(MaxDuration(9), talk("a", turn("b")))


@each_row("error", [KeyError("x"), AssertionError("no"), ValueError("odd")])
def test_an_evaluator_that_raises_is_an_error_and_no_failure(error):
    @dataclass
    class Raises(Evaluator):
        def evaluate(self, ctx: EvaluatorContext) -> bool:
            raise error

    with pytest.raises(EvaluatorError, match=f"evaluator Raises: {type(error).__name__}"):
        one(Raises())
    with pytest.raises(EvaluatorError, match=f"evaluator SaysLater: {type(error).__name__}"):
        asyncio.run(awaited(SaysLater(error)))


@each_row("what", [None, [], object(), float("nan"), {"x": None}])
def test_what_is_no_result_is_an_error(what):
    with pytest.raises((EvaluatorError, InputError), match="evaluator Says: "):
        one(Says(what))


def test_an_evaluator_that_runs_itself_elsewhere_does():
    @dataclass
    class Elsewhere(Evaluator):
        def evaluate(self, ctx: EvaluatorContext) -> bool:
            raise AssertionError("it blocks the loop")

        async def evaluate_async(self, ctx: EvaluatorContext) -> bool:
            return True

    assert asyncio.run(awaited(Elsewhere()))[0].passed


def test_a_class_in_place_of_an_evaluator_is_refused():
    with pytest.raises(InputError, match=r"from_evaluator: .* is not an Evaluator; make one of it"):
        from_evaluator(IsInstance)
