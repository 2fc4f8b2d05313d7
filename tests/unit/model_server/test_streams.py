"""The scripted server's streams, as the real clients read them."""

from __future__ import annotations

import anthropic
import openai
import pytest

from tests.model_server import ModelServer
from tests.model_server.script import call

ASKED = [{"role": "user", "content": "How much?"}]


@pytest.fixture
def server():
    steps = [{"text": "Let me look.", "tool_calls": [call("get_balance", account="a")]}, "{tool}"]
    with ModelServer(steps) as server:
        yield server


@pytest.fixture
def openai_client(server):
    with openai.OpenAI(base_url=server.base_url, api_key="x") as client:
        yield client


@pytest.fixture
def anthropic_client(server):
    url = server.base_url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=url, api_key="x") as client:
        yield client


def test_streamed_completions(openai_client):
    options = {"model": "gpt-5-mini", "messages": ASKED}
    with openai_client.chat.completions.stream(
        **options, stream_options={"include_usage": True}
    ) as asked:
        streamed = asked.get_final_completion()
    complete = openai_client.chat.completions.create(**options)
    message = streamed.choices[0].message
    assert message.content == complete.choices[0].message.content == "Let me look."
    assert message.tool_calls[0].function.arguments == '{"account": "a"}'
    assert streamed.usage == complete.usage
    plain = openai_client.chat.completions.create(**options, stream=True)
    assert all(chunk.choices and chunk.usage is None for chunk in plain)


def test_streamed_responses(openai_client):
    with openai_client.responses.stream(model="gpt-5-mini", input="How much?") as asked:
        kinds = [event.type for event in asked]
        streamed = asked.get_final_response()
    complete = openai_client.responses.create(model="gpt-5-mini", input="How much?")
    assert [item.id for item in streamed.output] == [item.id for item in complete.output]
    assert streamed.output_text == "Let me look."
    assert kinds.count("response.output_text.delta") == 2
    assert kinds[-1] == "response.completed"


def test_streamed_messages_and_the_result_of_a_tool(anthropic_client):
    options = {"model": "claude-haiku-4-5", "max_tokens": 10}
    complete = anthropic_client.messages.create(**options, messages=ASKED)
    with anthropic_client.messages.stream(**options, messages=ASKED) as asked:
        streamed = asked.get_final_message()
    assert streamed.content[1].input == complete.content[1].input == {"account": "a"}
    assert (streamed.stop_reason, streamed.usage.output_tokens) == ("tool_use", 20)
    result = {"type": "tool_result", "tool_use_id": complete.content[1].id, "content": "7"}
    continued = [
        *ASKED,
        {"role": "assistant", "content": complete.model_dump()["content"]},
        {"role": "user", "content": [result]},
    ]
    assert anthropic_client.messages.create(**options, messages=continued).content[0].text == "7"
