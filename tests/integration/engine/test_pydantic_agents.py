"""PydanticAI agents as they are: turns, limits, cassettes and ends."""

from __future__ import annotations

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import BinaryImage, FilePart, ModelResponse, ThinkingPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import UsageLimits

from ci_agent_eval.engine.adapters.loop import LoopAgent
from ci_agent_eval.engine.limits import RunLimits
from ci_agent_eval.engine.result import ImageContent
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.errors import InputError
from tests.integration.engine.rig import go, model_of, run_agent, session
from tests.model_server import ModelServer
from tests.model_server.script import call

SCRIPT = [{"tool_calls": [call("balance", account="checking")]}, "You have {tool}"]


def balance(account: str) -> dict[str, object]:
    """What an account holds."""
    return {"account": account, "usd": 1500}


def loop_agent(server, **options):
    return Agent(model_of(server), tools=[balance], **options)


def test_a_pydantic_agent_is_an_agent():
    with ModelServer(SCRIPT) as server:
        result = run_agent(loop_agent(server, name="teller"))
    found = (result.stop_reason, result.agent, result.model)
    assert found == ("completed", "teller", "openai:gpt-5-mini")
    assert result.final_response == 'You have {"account":"checking","usd":1500}'
    assert [turn.role for turn in result.turns] == ["user", "assistant", "assistant"]
    assert result.all_tool_calls[0].result == {"account": "checking", "usd": 1500}
    assert result.token_usage.total == 240
    assert result.available_tools == ("balance",)
    assert all(turn.latency_ms is not None for turn in result.trajectory.agent_turns)


def test_a_prompt_with_a_file_is_one_turn_in_a_conversation():
    async def both(server):
        async with session() as opened:
            opened.begin_episode("e")
            options = {"session": opened, "episode_id": "e"}
            first = await aitest_run(loop_agent(server), "hello", **options)
            prompt = ["look at", ImageContent(b"png", "image/png"), "now"]
            second = await aitest_run(
                loop_agent(server), prompt, messages=first.messages, **options
            )
            await opened.end_episode("e")
            return second

    with ModelServer(["hi", "seen"]) as server:
        result = go(both(server))
    assert [(turn.role, turn.content) for turn in result.turns] == [
        ("user", "look at\n<image/png, 3 bytes>\nnow"),
        ("assistant", "seen"),
    ]


def test_an_agent_without_a_model_is_refused():
    with pytest.raises(InputError, match="has no model"):
        run_agent(LoopAgent(Agent(), name="x"))


def test_the_limit_of_an_agent_inside_is_no_turn_that_the_outer_one_needed():
    inner = Agent(TestModel(), tools=[balance])
    outer = Agent(TestModel())

    @outer.tool_plain
    async def delegate() -> str:
        return (await inner.run("x", usage_limits=UsageLimits(request_limit=1))).output

    result = run_agent(outer, limits=RunLimits(max_turns=3))
    assert (result.stop_reason, result.outcome, result.needs_turn) == ("max_turns", "failed", False)


def test_typed_output_and_an_attachment_are_answers():
    def image(messages, info):
        return ModelResponse(parts=[FilePart(BinaryImage(b"png", media_type="image/png"))])

    model = FunctionModel(image, profile={"supports_image_output": True})
    result = run_agent(Agent(model, output_type=BinaryImage))
    assert (result.stop_reason, result.final_response) == ("completed", "<image/png, 3 bytes>")
    typed = run_agent(Agent(TestModel(custom_output_args={"usd": 3}), output_type=dict[str, int]))
    assert (typed.stop_reason, typed.traffic) == ("completed", None)


def test_thinking_alone_is_no_answer():
    def thinks(messages, info):
        return ModelResponse(parts=[ThinkingPart("hm")], finish_reason="stop")

    assert run_agent(Agent(FunctionModel(thinks))).stop_reason == "empty_answer"
