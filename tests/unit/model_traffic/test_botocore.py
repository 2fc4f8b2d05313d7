"""Requests, answers and refusals of the real client of Bedrock."""

from __future__ import annotations

import itertools
import json

import botocore.session
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.model_traffic.formats.registry import find_format
from tests.tables import each_row
from tests.traffic_wire import AWS_EVENTS, JSON, WIRES

CONVERSE = WIRES["bedrock-converse"]
MODEL = "us.amazon.nova-pro-v1:0"
LOOKUP = ("lookup", {"order": 7})


class Raw:
    """The body of an answer, which arrives in chunks."""

    def __init__(self, chunks):
        self.chunks = chunks

    def stream(self, *_args, **_options):
        yield from self.chunks


class Bedrock:
    """A client whose requests are answered before they are sent."""

    def __init__(self, status, headers, chunks):
        self.formats = []
        self.requests = []
        self.keys = []
        self.answer = status, headers, chunks
        session = botocore.session.Session()
        session.set_credentials("key", "secret")
        self.client = session.create_client("bedrock-runtime", region_name="us-east-1")
        self.client.meta.events.register("before-send.bedrock-runtime", self.send)

    def send(self, request, **_):
        found = find_format(request.method, request.url)
        self.formats.append(found.name)
        self.requests.append(found.parse_request(request.url, request.body))
        self.keys.append(found.build_key(request.url, request.body))
        status, headers, chunks = self.answer
        return AWSResponse(request.url, status, headers, Raw(chunks))


def conversation(call_id):
    use = {"toolUseId": call_id, "name": "lookup", "input": LOOKUP[1]}
    result = {"toolUseId": call_id, "content": [{"json": {"city": "Rome"}}], "status": "success"}
    image = {"format": "png", "source": {"bytes": b"\x89PNG\r\n\x1a\n"}}
    return {
        "modelId": MODEL,
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "Where is it?"}, {"image": image}]},
            {"role": "assistant", "content": [{"toolUse": use}]},
            {"role": "user", "content": [{"toolResult": result}]},
        ],
        "inferenceConfig": {"maxTokens": 100},
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "lookup", "inputSchema": {"json": {"a": 1}}}}]
        },
    }


def test_a_request_of_the_client_is_read_and_its_key_has_no_ids():
    bedrock = Bedrock(200, JSON, [json.dumps(CONVERSE.build_body(text="Hi")).encode()])
    for call_id in ("tooluse_a", "tooluse_b"):
        bedrock.client.converse(**conversation(call_id))
    request = bedrock.requests[0]
    assert (request.model, request.settings) == (MODEL, {"maxTokens": 100})
    system, user, assistant, tool = request.messages
    assert (system.text, user.text) == ("Be brief.", "Where is it?")
    assert (user.attachments[0].media_type, user.attachments[0].size_bytes) == ("image/png", 8)
    assert assistant.tool_calls == (
        ToolCall(id="tooluse_a", name="lookup", arguments={"order": 7}),
    )
    assert tool.tool_results[0].value == {"city": "Rome"}
    assert [(one.name, one.schema) for one in request.tools] == [("lookup", {"a": 1})]
    assert bedrock.keys[0] == bedrock.keys[1]


@each_row("method", ["converse", "converse_stream"])
def test_a_refusal_is_raised_after_one_request(method):
    refusal = CONVERSE.format.build_refusal("over budget: 4 of 4 turns")
    bedrock = Bedrock(refusal.status, refusal.headers, refusal.chunks)
    with pytest.raises(ClientError, match="over budget: 4 of 4 turns") as caught:
        getattr(bedrock.client, method)(**conversation("t1"))
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert bedrock.formats == ["bedrock-converse"]
    assert bedrock.requests[0].is_streamed == (method == "converse_stream")


def test_the_client_and_our_reader_see_the_same_stream():
    events = CONVERSE.build_events(LOOKUP, text="Hello")
    bedrock = Bedrock(200, AWS_EVENTS, events)
    seen = list(bedrock.client.converse_stream(**conversation("t1"))["stream"])
    assert [name for event in seen for name in event] == [
        "messageStart",
        *itertools.repeat("contentBlockDelta", 2),
        "contentBlockStop",
        "contentBlockStart",
        *itertools.repeat("contentBlockDelta", 2),
        "contentBlockStop",
        "messageStop",
        "metadata",
    ]
    answer = CONVERSE.read_events(events)
    assert (answer.text, answer.finish_reason) == ("Hello", seen[-2]["messageStop"]["stopReason"])
    usage = seen[-1]["metadata"]["usage"]
    assert (answer.tokens.input, answer.tokens.output) == (
        usage["inputTokens"],
        usage["outputTokens"],
    )
