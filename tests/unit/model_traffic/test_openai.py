"""Only OpenAI's formats: completions, which many servers write in their own way, and responses."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ci_agent_eval.contract.trajectory import (
    Attachment,
    TokenUsage,
    ToolCall,
    normalize_finish_reason,
)
from ci_agent_eval.model_traffic.formats.json_values import read_base64
from ci_agent_eval.model_traffic.messages import ToolDefinition
from tests import llm_wire
from tests.tables import each_row
from tests.traffic_wire import WIRES

CHAT, RESPONSES = WIRES["openai-chat"], WIRES["openai-responses"]
LOOKUP = ("lookup", {"order": 7})
AZURE = "https://me.openai.azure.com/openai/deployments/my-gpt/chat/completions"


def choice(**message):
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def chunk(**delta):
    return llm_wire.chat_chunk(delta)


def test_usage_has_cached_and_reasoning_tokens():
    body = CHAT.build_body(text="Hi")
    body["usage"] = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    assert CHAT.read(body).tokens == TokenUsage(input=100, output=20, cached=60, reasoning=15)
    response = RESPONSES.build_body(text="Hi")
    response["usage"] |= {"output_tokens_details": {"reasoning_tokens": 15}}
    assert RESPONSES.read(response).tokens == TokenUsage(input=36, output=87, reasoning=15)


def test_reasoning_that_xai_counts_apart_is_output():
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 135,
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    tokens = CHAT.read({**CHAT.build_body(text="Hi"), "usage": usage}).tokens
    assert tokens == TokenUsage(input=100, output=35, reasoning=15)


def test_settings_that_are_empty_are_not_set():
    request = {"messages": [], "stop": [], "logit_bias": {}, "seed": 0, "tool_choice": "none"}
    assert CHAT.parse(request).settings == {"seed": 0, "tool_choice": "none"}


@each_row(
    "usage",
    [None, {}, {"prompt_tokens": 5}, {"prompt_tokens": -1, "completion_tokens": 1}, {"total": 3}],
)
def test_without_both_counts_the_usage_is_unknown(usage):
    assert CHAT.read({**CHAT.build_body(text="Hi"), "usage": usage}).tokens is None


def test_a_stream_that_was_not_asked_for_its_usage_has_none():
    events = [event for event in CHAT.build_events(text="Hi") if b"prompt_tokens" not in event]
    assembler = CHAT.assemble(events)
    assert assembler.is_ended
    assert (assembler.answer.text, assembler.answer.tokens) == ("Hi", None)


@each_row("kind", ["custom", "function"])
def test_arguments_may_be_any_text(kind):
    key = "input" if kind == "custom" else "arguments"
    call = {"id": "c1", "type": kind, kind: {"name": "patch", key: "not json"}}
    answer = CHAT.read(choice(tool_calls=[call]))
    assert answer.tool_calls == (ToolCall(id="c1", name="patch", arguments="not json"),)
    first, second = {**call, "index": 0}, {"index": 0, kind: {key: " at all"}}
    streamed = CHAT.read_events([chunk(tool_calls=[first]), chunk(tool_calls=[second])])
    assert streamed.tool_calls == (ToolCall(id="c1", name="patch", arguments="not json at all"),)


@each_row("arguments", ["", "{}", None])
def test_no_arguments_are_an_empty_object(arguments):
    call = {"id": "c1", "function": {"name": "now", "arguments": arguments}}
    (read,) = CHAT.read(choice(tool_calls=[call])).tool_calls
    assert read.arguments == {}


def test_the_call_of_older_models_is_a_call():
    function = {"name": "lookup", "arguments": '{"order": 7}'}
    assert CHAT.read(choice(function_call=function)).tool_calls == (
        ToolCall(name="lookup", arguments={"order": 7}),
    )
    events = [
        chunk(function_call={"name": "lookup", "arguments": '{"or'}),
        chunk(function_call={"arguments": 'der": 7}'}),
    ]
    assert CHAT.read_events(events).tool_calls == (ToolCall(name="lookup", arguments={"order": 7}),)
    request = CHAT.parse(
        {
            "messages": [{"role": "function", "name": "lookup", "content": "in Rome"}],
            "functions": [{"name": "lookup", "parameters": {"type": "object"}}],
        }
    )
    (result,) = request.messages[0].tool_results
    assert (result.name, result.call_id, result.value) == ("lookup", None, "in Rome")
    assert request.tools == (ToolDefinition("lookup", {"type": "object"}),)


def test_calls_with_the_same_index_and_different_ids_are_two():
    events = [
        chunk(tool_calls=[{"index": 0, "id": at, "function": {"name": at, "arguments": "{}"}}])
        for at in ("a", "b")
    ]
    assert [call.name for call in CHAT.read_events(events).tool_calls] == ["a", "b"]


def test_the_first_chunk_of_azure_names_no_model():
    first = llm_wire.data({"id": "", "model": "", "choices": [], "prompt_filter_results": []})
    answer = CHAT.read_events([first, *CHAT.build_events(text="Hi")])
    assert (answer.id, answer.model) == ("chatcmpl-1", "gpt-5")


def test_azure_s_deployment_is_the_model_of_a_request_without_one():
    request = {"messages": [{"role": "user", "content": "Hi"}]}
    assert CHAT.parse(request, AZURE).model == "my-gpt"
    assert CHAT.parse({**request, "model": "gpt-5"}, AZURE).model == "gpt-5"
    assert CHAT.key(request, AZURE) != CHAT.key(request)


def test_a_refusal_is_the_text_and_the_finish_reason():
    answer = CHAT.read(choice(content=None, refusal="No."))
    assert answer.text == "No."
    assert normalize_finish_reason(answer.finish_reason) == "content_filter"
    events = [chunk(refusal="N"), chunk(refusal="o."), llm_wire.chat_chunk({}, "stop")]
    assert CHAT.read_events(events).finish_reason == "refusal"
    message = {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}
    response = RESPONSES.read({"status": "completed", "output": [message]})
    assert (response.text, response.finish_reason) == ("No.", "refusal")


def test_content_and_deltas_may_be_lists_of_parts():
    parts = [{"type": "text", "text": "He"}, {"type": "thinking"}, {"type": "text", "text": "llo"}]
    assert CHAT.read(choice(content=parts)).text == "Hello"
    assert CHAT.read_events([chunk(content=parts[:1]), chunk(content=parts[2:])]).text == "Hello"


def test_the_parts_of_a_response_that_broke_off_stand_in_order():
    deltas = [(1, "llo"), (0, "He"), (1, "!")]
    events = [
        llm_wire.data({
            "type": "response.output_text.delta", "output_index": 0, "content_index": at, "delta": text
        })
        for at, text in deltas
    ]  # fmt: skip
    assert RESPONSES.read_events(events).text == "Hello!"


def test_a_sound_has_its_transcript():
    assert CHAT.read(choice(audio={"transcript": "Hello", "data": "…"})).text == "Hello"
    events = [chunk(audio={"transcript": "Hel"}), chunk(audio={"transcript": "lo"})]
    assert CHAT.read_events(events).text == "Hello"


def test_of_several_choices_the_first_is_the_answer():
    events = [llm_wire.chat_chunk({"content": text}, at=at) for at, text in ((1, "B"), (0, "A"))]
    assert CHAT.read_events(events).text == "A"


def test_an_error_in_a_stream_is_the_error_of_the_answer():
    error = llm_wire.data({"error": {"message": "overloaded"}})
    assembler = CHAT.assemble([chunk(content="Hel"), error])
    assert (assembler.answer.text, assembler.answer.error) == ("Hel", "overloaded")
    assert assembler.is_complete
    failed = RESPONSES.read_events(
        [llm_wire.data({"type": "error", "message": "overloaded", "sequence_number": 1})]
    )
    assert failed.error == "overloaded"


def test_files_and_sounds_are_attachments():
    content = [
        {"type": "input_audio", "input_audio": {"format": "wav", "data": "UklGRg=="}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERg=="}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "image_url", "image_url": "data:image/png;base64,%%%"},
    ]
    (message,) = CHAT.parse({"messages": [{"role": "user", "content": content}]}).messages
    sound, document, stored, image = message.attachments
    assert (sound.media_type, sound.size_bytes) == ("audio/wav", 4)
    assert (document.media_type, document.size_bytes) == ("application/pdf", 4)
    assert stored == Attachment()
    assert image == Attachment(media_type="image/png")


@each_row(
    ("data", "content"),
    [
        ("+/+/", b"\xfb\xff\xbf"),
        ("-_-_", b"\xfb\xff\xbf"),
        ("+/\r\n+/", b"\xfb\xff\xbf"),
        ("AQ==", b"\x01"),
        ("AQ", b"\x01"),
        ("", b""),
    ],
)
def test_every_kind_of_base64_has_the_hash_of_its_bytes(data, content):
    found = read_base64(data, "image/png")
    assert (found.sha256, found.size_bytes) == (hashlib.sha256(content).hexdigest(), len(content))
    assert read_base64(data + "%", "image/png") == Attachment(media_type="image/png")


HOSTED = json.loads((Path(__file__).parent / "hosted_calls.json").read_text())


@each_row(("item", "call"), [(item, ToolCall(**call)) for item, call in HOSTED])
def test_calls_of_the_provider_s_tools_have_their_result(item, call):
    assert RESPONSES.read({"output": [item]}).tool_calls == (call,)
    streamed = llm_wire.response_events(items=[item | {"id": item.get("id", "i1")}])
    assert RESPONSES.read_events(streamed[:-1]).tool_calls == (call,)


def test_reasoning_and_lists_of_tools_are_no_calls():
    items = [{"type": "reasoning", "summary": []}, {"type": "mcp_list_tools", "tools": []}]
    assert RESPONSES.read({"output": items}).tool_calls == ()


def test_results_of_every_kind_belong_to_their_call():
    screenshot = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBO"}
    request = RESPONSES.parse(
        {
            "input": [
                {"role": "user", "content": "Go"},
                {"type": "local_shell_call_output", "id": "c1", "output": "ok"},
                {
                    "type": "function_call_output",
                    "call_id": "c2",
                    "output": [{"type": "input_text", "text": "ok"}, {"type": "input_image"}],
                },
                {"type": "computer_call_output", "call_id": "c3", "output": screenshot},
                {
                    "type": "shell_call_output",
                    "call_id": "c4",
                    "output": [{"stdout": "a", "stderr": ""}],
                },
                {"type": "custom_tool_call_output", "call_id": "c5", "status": "failed"},
            ]
        }
    )
    results = [result for message in request.messages for result in message.tool_results]
    assert [result.call_id for result in results] == ["c1", "c2", "c3", "c4", "c5"]
    assert [result.value for result in results[:2]] == ["ok", "ok"]
    assert results[3].value == [{"stdout": "a", "stderr": ""}]
    assert [result.is_error for result in results] == [False, False, False, False, True]
    assert request.messages[3].attachments[0].media_type == "image/png"
    assert results[2].value == ""


def test_the_items_of_one_answer_are_one_message():
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    request = RESPONSES.parse(
        {
            "input": [
                {"role": "user", "content": "Go"},
                {"type": "reasoning", "id": "rs_1"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "Now."}]},
                call,
                {"type": "function_call_output", "call_id": "c1", "output": "1"},
                {"role": "assistant", "content": "Done."},
                {"role": "developer", "content": "Be brief."},
            ]
        }
    )
    assert [(m.role, m.text, len(m.tool_calls)) for m in request.messages] == [
        ("user", "Go", 0),
        ("assistant", "Now.", 1),
        ("tool", "", 0),
        ("assistant", "Done.", 0),
        ("system", "Be brief.", 0),
    ]


@each_row("conversation", ["conv_1", {"id": "conv_1"}])
def test_the_continued_conversation_is_known(conversation):
    request = {"model": "gpt-5", "input": "Go", "conversation": conversation}
    assert RESPONSES.parse(request).previous_response_id == "conv_1"
    assert "conv_1" not in RESPONSES.key(request)
    assert RESPONSES.key(request) != RESPONSES.key({"model": "gpt-5", "input": "Go"})


def test_a_stored_prompt_needs_no_input():
    assert RESPONSES.parse({"prompt": {"id": "pmpt_1"}}).messages == ()


@each_row(
    ("body", "reason", "error"),
    [
        ({"status": "completed"}, "completed", None),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "max_output_tokens",
            None,
        ),
        ({"status": "failed", "error": {"message": "overloaded"}}, None, "overloaded"),
        ({"status": "in_progress"}, None, None),
        ({"status": "cancelled"}, "cancelled", None),
    ],
)
def test_the_status_of_a_response_is_its_finish_reason(body, reason, error):
    answer = RESPONSES.read(body)
    assert (answer.finish_reason, answer.error) == (reason, error)
    kind = f"response.{body['status']}"
    streamed = RESPONSES.assemble([llm_wire.data({"type": kind, "response": body})])
    assert (streamed.answer.finish_reason, streamed.answer.error) == (reason, error)
    assert streamed.is_ended == (body["status"] in ("completed", "incomplete", "failed"))


def test_items_are_kept_if_the_last_event_has_no_output():
    events = RESPONSES.build_events(LOOKUP, text="Hi")
    last = json.loads(events[-1][events[-1].index(b"{") :])
    last["response"]["output"] = []
    answer = RESPONSES.read_events([*events[:-1], llm_wire.data(last)])
    assert (answer.text, len(answer.tool_calls)) == ("Hi", 1)


def test_the_random_cache_key_of_the_agents_sdk_is_not_in_the_key():
    request = {"model": "gpt-5", "input": "Go"}
    keys = {RESPONSES.key({**request, "prompt_cache_key": f"agents-sdk:run:{n}"}) for n in range(2)}
    assert keys == {RESPONSES.key(request)}
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chat = {"model": "gpt-5", "messages": []}
    assert CHAT.key({**chat, **options}) == CHAT.key(chat)


def test_ids_and_times_of_codex_sessions_are_not_in_the_key():
    def build(number):
        passed = {"create_time": number, "session": f"s-{number}"}
        message = {"type": "message", "role": "user", "content": "Hi"}
        message["internal_chat_message_metadata_passthrough"] = passed
        metadata = {"session_id": f"s-{number}"}
        return RESPONSES.key({"model": "m", "input": [message], "client_metadata": metadata})

    assert build(1) == build(2)
    assert '"content":"Hi"' in build(1)
