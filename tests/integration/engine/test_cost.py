"""The cost of PydanticAI agents: the same live, recorded and replayed, and said if it is vague."""

from __future__ import annotations

import json

import httpx2
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from ci_agent_eval.engine.cassette import CassetteStore
from ci_agent_eval.redaction import Redactor
from tests.integration.engine.rig import run_agent
from tests.model_server.script import Step, call, completion
from tests.tables import each_row

UNKNOWN = "http://models.invalid/v1"
OPENROUTER = "https://openrouter.ai/api/v1"
JSON = {"content-type": "application/json"}
ASKS = Step(tool_calls=[call("ask_expert", topic="tea")])


def answer_as(model):
    """Return the handler of a server whose answers name a model."""

    def answer(request):
        messages = json.loads(request.content)["messages"]
        is_new = messages[-1]["content"] == "main"
        body = json.dumps(completion(ASKS if is_new else Step("Done"), model, 1)).encode()
        return httpx2.Response(200, headers=JSON, content=stream(body))

    return answer


async def stream(body):
    """Yield a body that is read from the stream, where the recorder sees it."""
    yield body


def agent_at(url, asked, answered):
    """An agent that asks a model, and another one in its tool."""
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer_as(answered)))

    def connect():
        provider = OpenAIProvider(base_url=url, api_key="k", http_client=client)
        return OpenAIChatModel(asked, provider=provider)

    async def ask_expert(topic: str) -> str:
        return (await Agent(connect()).run(topic)).output

    return Agent(connect(), tools=[ask_expert])


def run_in_each_mode(agent, folder):
    yield run_agent(agent, "main")
    for mode in ("record", "replay"):
        with CassetteStore(mode, Redactor.from_environ({})).episode("e", folder, "s") as session:
            yield run_agent(agent, "main", cassette_session=session)


@each_row(
    ("url", "asked", "answered", "vendor_priced"),
    [
        (UNKNOWN, "gpt-5-mini", "gpt-5-mini", ("gpt-5-mini",)),
        (UNKNOWN, "gpt-5-mini", "served-by-us", ("gpt-5-mini",)),
        (OPENROUTER, "deepseek/deepseek-chat", "deepseek/deepseek-chat", ()),
        (OPENROUTER, "deepseek/deepseek-chat", "served-by-us", ()),
    ],
)
def test_each_mode_has_the_same_cost(tmp_path, url, asked, answered, vendor_priced):
    agent = agent_at(url, asked, answered)
    live, recorded, replayed = run_in_each_mode(agent, tmp_path)
    costs = [turn.cost_usd for turn in live.trajectory.agent_turns]
    assert len(costs) == 3
    assert costs[0] > 0
    for result in (recorded, replayed):
        assert [turn.cost_usd for turn in result.trajectory.agent_turns] == costs
    for result in (live, recorded, replayed):
        assert result.traffic.vendor_priced_models == vendor_priced


def test_a_model_without_a_price_has_no_cost_in_any_mode(tmp_path):
    agent = agent_at(UNKNOWN, "our-model", "our-model")
    for result in run_in_each_mode(agent, tmp_path):
        assert (result.cost_usd, result.traffic.vendor_priced_models) == (None, ())
