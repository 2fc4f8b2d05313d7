"""Requests of the real clients of OpenAI and Anthropic."""

from __future__ import annotations

import anthropic
import httpx2
import openai
import pydantic

from ci_agent_eval.contract.trajectory import Attachment
from ci_agent_eval.model_traffic.formats.registry import find_format
from ci_agent_eval.model_traffic.messages import ToolDefinition
from tests import llm_wire

LOOKUP = ("lookup", {"order": 7})
SCHEMA = {"type": "object", "properties": {"order": {"type": "integer"}}}
PNG = "iVBORw0KGgo="
IMAGE = Attachment(
    media_type="image/png",
    sha256="4c4b6a3be1314ab86138bef4314dde022e600960d8689a2c8f8631802d20dab6",
    size_bytes=8,
)


class Provider:
    """Answers the requests of a client, and parses them as our hook does."""

    def __init__(self, body):
        self.body = body
        self.requests = []

    def __call__(self, request):
        found = find_format(request.method, str(request.url))
        self.requests.append(found.parse_request(request.url.path, request.read()))
        return httpx2.Response(200, json=self.body)

    def openai(self):
        return openai.OpenAI(api_key="sk-test", http_client=self._client())

    def anthropic(self):
        return anthropic.Anthropic(api_key="sk-test", http_client=self._client())

    def _client(self):
        return httpx2.Client(transport=httpx2.MockTransport(self))


class Order(pydantic.BaseModel):
    """A typed output."""

    order: int


FUNCTION = {"name": "lookup", "parameters": SCHEMA}


def test_a_chat_request_of_the_client_is_read():
    provider = Provider(llm_wire.chat_body(text='{"order": 7}'))
    provider.openai().chat.completions.parse(
        model="gpt-5",
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Which order?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                ],
            }
        ],
        tools=[{"type": "function", "function": {**FUNCTION, "strict": True}}],
        response_format=Order,
        temperature=0.5,
        reasoning_effort="low",
    )
    (request,) = provider.requests
    (user,) = request.messages
    assert (user.text, user.attachments) == ("Which order?", (IMAGE, Attachment()))
    assert request.tools == (ToolDefinition("lookup", SCHEMA),)
    assert request.settings == {"temperature": 0.5, "reasoning_effort": "low"}
    assert request.output_schema["properties"]["order"]["type"] == "integer"


def test_a_responses_request_of_the_client_is_read():
    provider = Provider(llm_wire.response_body(text='{"order": 7}'))
    provider.openai().responses.parse(
        model="gpt-5",
        input=[
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Which order?"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
                ],
            }
        ],
        tools=[
            {"type": "function", "strict": True, **FUNCTION},
            {"type": "web_search"},
            {"type": "shell"},
            {"type": "shell", "environment": {"type": "container_auto"}},
        ],
        text_format=Order,
        reasoning={"effort": "low"},
        previous_response_id="resp_0",
    )
    (request,) = provider.requests
    (user,) = request.messages
    assert (user.text, user.attachments) == ("Which order?", (IMAGE,))
    assert [tool.name for tool in request.tools] == ["lookup", "web_search", "shell", "shell"]
    assert request.tools[0].schema == SCHEMA
    assert request.settings == {"reasoning": {"effort": "low"}}
    assert request.output_schema["properties"]["order"]["type"] == "integer"
    assert request.previous_response_id == "resp_0"


def test_a_messages_request_of_the_client_is_read():
    provider = Provider(llm_wire.message_body(text='{"order": 7}'))
    provider.anthropic().messages.parse(
        model="claude-sonnet-5",
        max_tokens=100,
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Which order?"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t1", "name": "lookup", "input": LOOKUP[1]}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "no such order"}],
                    },
                    {"type": "text", "text": "And now?"},
                ],
            },
        ],
        tools=[
            {"name": "lookup", "input_schema": SCHEMA},
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "bash_20250124", "name": "bash"},
        ],
        output_format=Order,
    )
    (request,) = provider.requests
    user, _, tool, last = request.messages
    assert (user.text, user.attachments) == ("Which order?", (IMAGE,))
    (result,) = tool.tool_results
    assert (result.call_id, result.value, result.is_error) == ("t1", "no such order", True)
    assert (last.role, last.text) == ("user", "And now?")
    assert [tool.name for tool in request.tools] == ["lookup", "web_search", "bash"]
    assert request.settings["max_tokens"] == 100
    assert request.output_schema["properties"]["order"]["type"] == "integer"
