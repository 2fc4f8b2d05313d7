"""Only Bedrock: Converse, its binary streams, and `invoke` with Anthropic's format."""

from __future__ import annotations

import json
import sys

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall
from ci_agent_eval.model_traffic.messages import ToolDefinition
from tests.model_server.bedrock import aws_event
from tests.tables import each_row
from tests.traffic_wire import AWS_EVENTS, WIRES, cut, invoke_events

CONVERSE, MESSAGES = WIRES["bedrock-converse"], WIRES["anthropic-messages"]
LOOKUP = ("lookup", {"order": 7})
INVOKE = "https://bedrock-runtime.us-east-1.amazonaws.com/model/eu.anthropic.claude-v1%3A0/invoke"


def test_a_request_has_the_model_of_its_path_tools_and_settings():
    specification = {"name": "lookup", "inputSchema": {"json": {"type": "object"}}}
    request = CONVERSE.parse(
        {
            "messages": [],
            "inferenceConfig": {"maxTokens": 5},
            "additionalModelRequestFields": {"top_k": 3},
            "toolConfig": {
                "tools": [
                    {"toolSpec": specification},
                    {"cachePoint": {"type": "default"}},
                    {"systemTool": {"name": "nova_grounding"}},
                ],
                "toolChoice": {"auto": {}},
            },
            "outputConfig": {
                "textFormat": {
                    "type": "json_schema",
                    "structure": {"jsonSchema": {"name": "order", "schema": '{"type": "object"}'}},
                }
            },
        }
    )
    assert request.model == "us.amazon.nova-pro-v1:0"
    assert request.tools == (
        ToolDefinition("lookup", {"type": "object"}),
        ToolDefinition("nova_grounding"),
    )
    assert request.settings == {
        "maxTokens": 5,
        "additionalModelRequestFields": {"top_k": 3},
        "toolChoice": {"auto": {}},
    }
    assert request.output_schema == {"type": "object"}


@each_row(
    ("content", "value"),
    [
        ([{"json": {"city": "Rome"}}], {"city": "Rome"}),
        ([{"json": 1}, {"json": 2}], [1, 2]),
        ([{"text": "a"}, {"text": "b"}], "ab"),
        ([], ""),
    ],
)
def test_results_are_texts_or_values(content, value):
    result = {"toolUseId": "t1", "content": content, "status": "error"}
    message = {"role": "user", "content": [{"toolResult": result}, {"text": "And now?"}]}
    tool, user = CONVERSE.parse({"messages": [message]}).messages
    (read,) = tool.tool_results
    assert (read.call_id, read.value, read.is_error) == ("t1", value, True)
    assert (user.role, user.text) == ("user", "And now?")


def test_images_are_attachments():
    image = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}
    stored = {"document": {"format": "pdf", "source": {"s3Location": {"uri": "s3://a/b"}}}}
    (message,) = CONVERSE.parse(
        {"messages": [{"role": "user", "content": [image, stored]}]}
    ).messages
    first, second = message.attachments
    assert (first.media_type, first.size_bytes) == ("image/png", 8)
    assert (second.media_type, second.sha256) == ("application/pdf", None)


def test_input_tokens_include_those_of_the_cache():
    body = CONVERSE.build_body(text="Hello")
    body["usage"] |= {"cacheReadInputTokens": 100, "cacheWriteInputTokens": 10}
    assert CONVERSE.read(body).tokens == TokenUsage(input=140, output=12, cached=100)


def test_a_refusal_names_the_error_that_botocore_raises():
    refusal = CONVERSE.format.build_refusal("over budget")
    assert refusal.headers["x-amzn-errortype"] == "ValidationException"
    assert json.loads(refusal.chunks[0]) == {"message": "over budget"}


def test_an_exception_in_a_stream_is_an_error():
    events = CONVERSE.build_events(text="Hello world")[:2]
    failure = aws_event("throttlingException", {"message": "Too many tokens"}, kind="exception")
    assembler = CONVERSE.assemble([*events, failure])
    assert (assembler.answer.text, assembler.answer.error) == ("Hello", "Too many tokens")
    assert assembler.is_complete
    unnamed = CONVERSE.assemble([aws_event("modelStreamErrorException", {}, kind="exception")])
    assert unnamed.answer.error == "modelStreamErrorException"


def test_a_damaged_stream_keeps_the_events_before():
    first, second, third, *_ = CONVERSE.build_events(text="Hello world")
    answer = CONVERSE.read_events([first, second, third.replace(b"world", b"wOrld")])
    assert answer.text == "Hello"
    assert "Checksum mismatch" in answer.error
    assert "not an AWS event stream" in CONVERSE.read_events([b"<html>" * 9, b"more"]).error


def test_without_botocore_the_answer_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "botocore.eventstream", None)
    assembler = CONVERSE.assemble(CONVERSE.build_events(text="Hello"))
    assert "install `botocore`" in assembler.answer.error
    assert not assembler.is_complete
    assert CONVERSE.read(CONVERSE.build_body(text="Hello")).text == "Hello"


@given(st.lists(st.integers(0), max_size=30))
def test_invoke_streams_anthropic_s_events(places):
    events = MESSAGES.build_events(LOOKUP, text="Hello")
    stream = b"".join(invoke_events(events))
    assembler = MESSAGES.assemble(cut(stream, places), 200, AWS_EVENTS)
    assert assembler.is_complete
    assert assembler.answer == MESSAGES.read_events(events)


def test_an_invoked_request_has_the_model_of_its_path():
    body = MESSAGES.build_request("Hi", LOOKUP, "t1", "in Rome", anthropic_version="bedrock-1")
    del body["model"]
    request = MESSAGES.parse(body, INVOKE)
    assert (request.model, request.is_streamed) == ("eu.anthropic.claude-v1:0", False)
    assert request.messages[2].tool_calls == (
        ToolCall(id="t1", name="lookup", arguments={"order": 7}),
    )
    assert MESSAGES.parse(body, f"{INVOKE}-with-response-stream").is_streamed
