"""Only Google's format."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.trajectory import Attachment, TokenUsage, ToolCall
from ci_agent_eval.model_traffic.messages import ToolDefinition
from tests import llm_wire
from tests.tables import each_row
from tests.traffic_wire import JSON, WIRES, cut, gemini_chunks

GEMINI = WIRES["gemini"]
LOOKUP = ("lookup", {"order": 7})


def text_of(*parts, role="user"):
    return {"role": role, "parts": list(parts)}


def test_snake_case_is_read_as_camel_case():
    request = GEMINI.parse(
        {
            "system_instruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                text_of({"text": "Hi"}, {"inline_data": {"mime_type": "image/png", "data": ""}}),
                text_of({"function_call": {"name": "look_up", "args": {"a_b": 1}}}, role="model"),
            ],
            "tools": [
                {"function_declarations": [{"name": "look_up", "parameters": {"a_b": 1}}]},
                {"google_search": {}},
            ],
            "generation_config": {"max_output_tokens": 5, "response_schema": {"x_y": 1}},
        }
    )
    system, user, assistant = request.messages
    assert (system.role, system.text) == ("system", "Be brief.")
    assert (user.text, user.attachments[0].media_type) == ("Hi", "image/png")
    assert assistant.tool_calls == (ToolCall(name="look_up", arguments={"a_b": 1}),)
    assert request.tools == (
        ToolDefinition("look_up", {"a_b": 1}),
        ToolDefinition("googleSearch"),
    )
    assert request.settings == {"maxOutputTokens": 5}
    assert request.output_schema == {"x_y": 1}


@each_row(
    ("response", "value", "is_error"),
    [
        ({"result": 5}, 5, False),
        ({"output": [1]}, [1], False),
        ({"error": "no such order"}, "no such order", True),
        ({"content": "ok"}, "ok", False),
        ({"return_value": 5}, 5, False),
        ({"price": 5}, {"price": 5}, False),
        ({"result": 5, "unit": "EUR"}, {"result": 5, "unit": "EUR"}, False),
        ({}, {}, False),
    ],
)
def test_results_are_taken_out_of_the_objects_of_clients(response, value, is_error):
    part = {"functionResponse": {"name": "lookup", "response": response}}
    (message,) = GEMINI.parse({"contents": [text_of(part)]}).messages
    (result,) = message.tool_results
    assert (result.name, result.call_id) == ("lookup", None)
    assert (result.value, result.is_error) == (value, is_error)


def test_results_and_text_of_one_content_are_two_messages():
    parts = {"functionResponse": {"name": "f", "response": {}}}, {"text": "And now?"}
    tool, user = GEMINI.parse({"contents": [text_of(*parts)]}).messages
    assert (tool.role, user.role, user.text) == ("tool", "user", "And now?")


def test_thoughts_are_tokens_and_no_text():
    body = GEMINI.build_body(text="Hello")
    body["candidates"][0]["content"]["parts"].insert(0, {"text": "Hm.", "thought": True})
    body["usageMetadata"] |= {"cachedContentTokenCount": 3, "toolUsePromptTokenCount": 4}
    answer = GEMINI.read(body)
    assert answer.text == "Hello"
    assert answer.tokens == TokenUsage(input=34, output=17, cached=3, reasoning=5)
    assert (answer.id, answer.model) == ("resp_1", "gemini-3-pro")


@each_row(
    ("outcome", "result", "error"),
    [("OUTCOME_OK", "4\n", None), ("OUTCOME_FAILED", None, "OUTCOME_FAILED: 4\n")],
)
def test_code_that_the_provider_ran_has_its_result(outcome, result, error):
    body = GEMINI.build_body()
    body["candidates"][0]["content"]["parts"] = [
        {"executableCode": {"language": "PYTHON", "code": "print(2 + 2)"}},
        {"codeExecutionResult": {"outcome": outcome, "output": "4\n"}},
    ]
    (call,) = GEMINI.read(body).tool_calls
    assert call.arguments == {"language": "PYTHON", "code": "print(2 + 2)"}
    assert (call.result, call.error) == (result, error)


def test_a_search_that_grounds_the_answer_is_a_call():
    body = GEMINI.build_body(text="Rome")
    body["candidates"][0]["groundingMetadata"] = {
        "webSearchQueries": ["capital"],
        "groundingChunks": [{"web": {"uri": "https://example.com"}}],
    }
    (call,) = GEMINI.read(body).tool_calls
    assert call.name == "google_search"
    assert call.arguments == {"queries": ["capital"]}
    assert call.result == {"sources": ["https://example.com"]}


def test_a_blocked_prompt_has_its_reason():
    body = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {}}
    answer = GEMINI.read(body)
    assert (answer.finish_reason, answer.tokens) == ("PROHIBITED_CONTENT", None)
    assert GEMINI.assemble([b"data: " + json.dumps(body).encode() + b"\n\n"]).is_complete


def test_a_stream_ends_with_both_finish_reason_and_usage():
    *_, last = gemini_chunks(text="Hello")
    usage = {"usageMetadata": last.pop("usageMetadata")}
    assembler = GEMINI.assemble([llm_wire.data(last)])
    assert assembler.is_complete
    assembler.feed(llm_wire.data(usage))
    assert assembler.is_complete
    assert assembler.answer.tokens is not None


@given(st.lists(st.integers(0), max_size=30))
def test_a_list_of_chunks_is_a_stream(places):
    chunks = gemini_chunks(LOOKUP, text="Hello")
    stream = json.dumps(chunks, indent=1).encode()
    assembler = GEMINI.assemble(cut(stream, places), 200, JSON)
    assert assembler.is_complete
    assert assembler.answer == GEMINI.read_events(GEMINI.build_events(LOOKUP, text="Hello"))
    assert not GEMINI.assemble([stream[: stream.index(b"lo")]], 200, JSON).is_complete


def test_other_media_are_attachments():
    parts = [
        {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://bucket/a"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}},
    ]
    (message,) = GEMINI.parse({"contents": [text_of(*parts)]}).messages
    video, sound = message.attachments
    assert video == Attachment(media_type="video/mp4")
    assert (sound.media_type, sound.size_bytes) == ("audio/wav", 4)
