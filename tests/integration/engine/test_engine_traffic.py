"""Declared and PydanticAI agents: what only the model traffic shows is in their turns."""

from __future__ import annotations

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from ci_agent_eval.contract.episode import TrafficSummary
from tests.integration.engine.rig import run_agent
from tests.model_server import ModelServer
from tests.model_server.script import call
from tests.tables import each_row

SCRIPT = [{"tool_calls": [call("balance", account="checking")]}, '{"usd": 1500}']


class Balance(BaseModel):
    usd: int


def balance(account: str) -> int:
    """What an account holds."""
    return 1500


def get_openai(kind):
    def build(server):
        provider = OpenAIProvider(base_url=server.base_url, api_key="k")
        return kind("gpt-5-mini", provider=provider)

    return build


def get_anthropic(server):
    provider = AnthropicProvider(base_url=server.root_url, api_key="k")
    return AnthropicModel("claude-haiku-4-5", provider=provider)


MODELS = {
    "chat": (get_openai(OpenAIChatModel), "max_completion_tokens"),
    "responses": (get_openai(OpenAIResponsesModel), "max_output_tokens"),
    "anthropic": (get_anthropic, "max_tokens"),
}


def assert_traffic_is_in(turn, model, setting):
    assert (turn.requested_model, turn.response_model) == (model, model)
    assert turn.settings[setting] == 500
    assert 0 <= turn.first_byte_ms <= turn.latency_ms


@each_row("name", MODELS)
def test_turns_of_a_pydantic_agent_have_the_data_of_its_traffic(name):
    build, setting = MODELS[name]
    with ModelServer(SCRIPT) as server:
        model = build(server)
        agent = Agent(model, tools=[balance], model_settings={"max_tokens": 500})
        result = run_agent(agent)
    assert len(result.trajectory.agent_turns) == 2
    for turn in result.trajectory.agent_turns:
        assert_traffic_is_in(turn, model.model_name, setting)
    priced = (model.model_name,)  # the server is at no address of the price table
    assert result.traffic == TrafficSummary(requests=2, vendor_priced_models=priced)


def test_reasoning_tokens_and_typed_output_are_those_of_the_traffic():
    usage = {"input": 100, "output": 20, "reasoning": 8}
    with ModelServer([{"text": '{"usd": 1500}', "usage": usage}]) as server:
        agent = Agent(get_openai(OpenAIResponsesModel)(server), output_type=NativeOutput(Balance))
        turn = run_agent(agent).turns[-1]
    assert turn.tokens.reasoning == 8
    assert turn.typed_output == {"usd": 1500}
