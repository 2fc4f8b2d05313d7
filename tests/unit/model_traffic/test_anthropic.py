"""Only Anthropic's format."""

from __future__ import annotations

from ci_agent_eval.contract.trajectory import Attachment, TokenUsage, ToolCall
from tests import llm_wire
from tests.tables import each_row
from tests.traffic_wire import WIRES

MESSAGES = WIRES["anthropic-messages"]
LOOKUP = ("lookup", {"order": 7})


def answer_of(*blocks):
    return MESSAGES.read({**MESSAGES.build_body(), "content": list(blocks)})


def test_input_tokens_include_those_of_the_cache():
    body = MESSAGES.build_body(text="Hi")
    body["usage"] = {
        "input_tokens": 10,
        "output_tokens": 50,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 1000,
        "output_tokens_details": {"thinking_tokens": 30},
    }
    expected = TokenUsage(input=1110, output=50, cached=100, reasoning=30)
    assert MESSAGES.read(body).tokens == expected


def test_the_last_event_counts_the_output_and_may_correct_the_input():
    events = MESSAGES.build_events(text="Hi")
    usage = {"input_tokens": 500, "output_tokens": 7, "cache_read_input_tokens": 3}
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
    at = next(n for n, event in enumerate(events) if b"message_delta" in event)
    changed = [*events[:at], llm_wire.data(delta), *events[at + 1 :]]
    assert MESSAGES.read_events(changed).tokens == TokenUsage(input=503, output=7, cached=3)


def test_thinking_is_no_text():
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    assert answer_of(thinking, {"type": "text", "text": "Hi"}).text == "Hi"


FOUND = {"type": "web_search_result", "url": "https://example.com"}
SEARCH = {"type": "server_tool_use", "name": "web_search"}
SEARCHED = {"type": "web_search_tool_result"}
ROLL = {"type": "mcp_tool_use", "name": "roll", "server_name": "dice"}
ROLLED = {"type": "mcp_tool_result"}
FAILED = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
NO_DICE = [{"type": "text", "text": "no dice"}]


@each_row(
    ("use", "result", "expected"),
    [
        (
            SEARCH,
            {**SEARCHED, "content": [{**FOUND, "encrypted_content": "EoQB"}]},
            {"result": [FOUND]},
        ),
        (SEARCH, {**SEARCHED, "content": FAILED}, {"error": "max_uses_exceeded"}),
        (ROLL, {**ROLLED, "is_error": True, "content": NO_DICE}, {"error": "no dice"}),
        (ROLL, {**ROLLED, "is_error": False, "content": "4"}, {"result": "4"}),
    ],
)
def test_calls_of_the_provider_s_tools_have_their_result(use, result, expected):
    use = {**use, "id": "t1", "input": {"sides": 6}}
    (call,) = answer_of(use, {**result, "tool_use_id": "t1"}).tool_calls
    assert call == ToolCall(id="t1", name=use["name"], arguments={"sides": 6}, **expected)
    (unanswered,) = answer_of(use).tool_calls
    assert (unanswered.result, unanswered.error) == (None, None)


def test_an_error_in_a_stream_is_the_error_of_the_answer():
    events = MESSAGES.build_events(text="Hello world")
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assembler = MESSAGES.assemble([*events[:4], llm_wire.data(error, "error")])
    assert (assembler.answer.text, assembler.answer.error) == ("Hello", "Overloaded")
    assert assembler.is_complete


def test_arguments_cut_in_the_middle_are_a_text():
    events = MESSAGES.build_events(LOOKUP)
    half = next(n for n, event in enumerate(events) if b"partial_json" in event) + 2
    (call,) = MESSAGES.read_events(events[:half]).tool_calls
    assert isinstance(call.arguments, str)
    assert '{"order": 7}'.startswith(call.arguments)


def test_a_call_without_arguments_has_an_empty_object():
    (call,) = MESSAGES.read_events(MESSAGES.build_events(("now", {}))).tool_calls
    assert call.arguments == {}


def test_documents_are_attachments_and_texts_are_none():
    blocks = [
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
        },
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "document", "source": {"type": "text", "data": "Hello"}},
    ]
    (message,) = MESSAGES.parse({"messages": [{"role": "user", "content": blocks}]}).messages
    document, image = message.attachments
    assert (document.media_type, document.size_bytes) == ("application/pdf", 4)
    assert image == Attachment()


def test_images_in_results_are_attachments_of_the_tool():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [image]}
    (message,) = MESSAGES.parse({"messages": [{"role": "user", "content": [result]}]}).messages
    assert message.role == "tool"
    assert message.attachments[0].media_type == "image/png"


def test_session_ids_in_the_metadata_are_not_in_the_key():
    request = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": []}
    keys = {MESSAGES.key({**request, "metadata": {"user_id": f"session_{n}"}}) for n in range(2)}
    assert keys == {MESSAGES.key(request)}
