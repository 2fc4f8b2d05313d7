from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.engine.cassette.canonical import CanonicalRequest
from ci_agent_eval.engine.cassette.document import (
    Cassette,
    RecordedExchange,
    parse_cassette,
    render_cassette,
)
from ci_agent_eval.engine.cassette.misses import describe_changes
from ci_agent_eval.engine.cassette.requests import canonicalize_request
from ci_agent_eval.engine.cassette.responses import record_response, replay_response
from ci_agent_eval.engine.cassette.yaml_text import parse_cassette_yaml, render_cassette_yaml
from ci_agent_eval.errors import InputError
from tests.tables import each_row

TOOL = ToolDefinition(name="balance", description="What an account holds.")


def same(value):
    return value


def prompt(text="my balance?"):
    return ModelRequest(parts=[UserPromptPart(text)], instructions="Be brief.")


def asked(call_id, args='{"account": "checking"}'):
    return ModelResponse(parts=[ToolCallPart("balance", args, call_id)])


def told(call_id, content="1500"):
    return ModelRequest(
        parts=[ToolReturnPart("balance", content, call_id)], instructions="Be brief."
    )


def request(
    *messages, tools=(TOOL,), redact=same, model="openai:gpt-5-mini", **settings
) -> CanonicalRequest:
    parameters = ModelRequestParameters(function_tools=list(tools))
    return canonicalize_request(model, messages or (prompt(),), settings, parameters, redact)


def exchanges():
    first = request()
    second = request(prompt(), asked("xyz"), told("xyz"))
    answer = ModelResponse(parts=[TextPart("You have\n1500.")])
    return (
        RecordedExchange(first, record_response(asked("xyz"), first, same)),
        RecordedExchange(second, record_response(answer, second, same)),
    )


def test_the_same_question_has_the_same_key_whatever_ids_and_times_it_carries():
    a = request(prompt(), asked("abc"), told("abc"))
    b = request(prompt(), asked("call_777", {"account": "checking"}), told("call_777"))
    assert a.key == b.key


@each_row("written", ["{}", " {} ", {}, None])
def test_a_call_without_arguments_asks_the_same_however_it_is_written(written):
    live = request(prompt(), asked("a", "{}"), told("a"))
    assert request(prompt(), asked("a", written), told("a")).key == live.key
    (part,) = record_response(asked("a", "{}"), live, same)["parts"]
    assert part["args"] == {}


@each_row("text", ['{"n": 1180591620717411303424}', '{"a": 1, "a": 2}', "[1]", "{"])
def test_arguments_that_a_cassette_cannot_hold_exactly_stay_as_they_were_written(text):
    (part,) = record_response(asked("a", text), request(), same)["parts"]
    assert part["args"] == text


@each_row(
    ("other", "label"),
    [
        (request(model="openai:gpt-5"), "the model"),
        (request(temperature=1.0), "the model settings"),
        (request(tools=[]), "the tools ('balance' is gone)"),
        (request(prompt("my balances?")), "the prompt"),
        (
            request(tools=[ToolDefinition(name="balance", description="Other.")]),
            "the description of tool 'balance'",
        ),
        (
            request(ModelRequest(parts=[UserPromptPart("my balance?")], instructions="Be kind.")),
            "the system prompt",
        ),
        (request(prompt(), asked("a"), told("a")), "the conversation (it is longer)"),
    ],
)
def test_a_changed_part_changes_the_key_and_is_named(other, label):
    assert other.key != request().key
    said = describe_changes(request(), other)
    assert said.splitlines()[0] == f"changed: {label}"


@each_row(
    ("messages", "label", "lines"),
    [
        (
            (asked("a", '{"account": "savings"}'), told("a")),
            "the arguments of 'balance'",
            ["-account: checking", "+account: savings"],
        ),
        ((asked("a"), told("a", "1501")), "the result of 'balance'", ["-1500", "+1501"]),
    ],
)
def test_of_a_conversation_the_first_difference_is_shown(messages, label, lines):
    old = request(prompt(), asked("a"), told("a"))
    said = describe_changes(old, request(prompt(), *messages)).splitlines()
    assert said[0] == f"changed: {label}"
    assert said[-2:] == lines


def test_a_long_difference_is_cut_and_says_so():
    said = describe_changes(request(prompt("a\n" * 50)), request(prompt("b\n" * 50)))
    assert "more lines" in said
    assert len(said.splitlines()) < 20


def test_how_a_request_is_sent_is_no_part_of_the_question():
    sent = request(timeout=3, extra_headers={"X-Key": "secret"})
    assert sent.key == request().key
    assert "secret" not in str(sent.head)


def test_a_secret_is_neither_in_the_request_nor_in_its_key():
    def redact(value):
        return parse_cassette_yaml(
            render_cassette_yaml(value)
            .replace("s3cret", "[redacted]")
            .replace("0ther", "[redacted]")
        )

    a = request(prompt("use s3cret"), redact=redact)
    b = request(prompt("use 0ther"), redact=redact)
    assert "s3cret" not in str(a)
    assert a.key == b.key


def test_a_file_is_named_by_what_it_holds_and_not_written_out():
    from pydantic_ai.messages import BinaryContent

    def image(data):
        return request(
            ModelRequest(parts=[UserPromptPart([BinaryContent(data, media_type="image/png")])])
        )

    assert image(b"a" * 500).key != image(b"b" * 500).key
    assert len(str(image(b"a" * 5000).messages)) < 400


def test_a_cassette_is_read_as_it_was_written():
    cassette = Cassette("banking").with_take(2, exchanges()).with_take(1, exchanges()[:1])
    text = render_cassette(cassette)
    read = parse_cassette(text, "x")
    assert list(read.takes) == [1, 2]
    assert [e.request.key for e in read.takes[2]] == [e.request.key for e in exchanges()]
    assert [e.response for e in read.takes[2]] == [e.response for e in exchanges()]
    assert render_cassette(read) == text


def test_a_later_request_holds_only_what_is_new(golden):
    text = render_cassette(Cassette("banking").with_take(1, exchanges()))
    assert text.count("my balance?") == 1
    assert "continues: 1" in text
    golden("cassette.yaml", text)


def test_an_edited_answer_is_replayed_in_what_follows_it():
    text = render_cassette(Cassette("banking").with_take(1, exchanges()))
    edited = parse_cassette(text.replace("account: checking", "account: savings"), "x")
    again = request(prompt(), asked("q", {"account": "savings"}), told("q"))
    assert edited.takes[1][1].request.key == again.key


def test_replayed_ids_do_not_meet_those_of_the_conversation():
    first = request()
    response = record_response(asked("xyz"), first, same)
    assert response["parts"][0]["tool_call_id"] == "call-1"
    history = request(prompt(), asked("call-2"), told("call-2"))
    second = {"parts": [{**response["parts"][0], "tool_call_id": "call-2"}]}
    (part,) = replay_response(second, history).parts
    assert part.tool_call_id not in ("call-1", "call-2")
    again = request(
        prompt(), asked("call-2"), told("call-2"), asked(part.tool_call_id), told(part.tool_call_id)
    )
    assert list(again.ids.values()) == ["call-1", "call-2"]


@each_row(
    "text",
    [
        "",
        "[]",
        "cassette: 3\nscenario: s\ntakes: []",
        "cassette: 1\nscenario: s",
        "cassette: 1\nscenario: s\ntakes: [{iteration: 1, exchanges: [{}]}]",
        "cassette: 1\nscenario: s\ntakes: [{iteration: 1, exchanges: [{request: {continues: 1, messages: []}, response: {}}]}]",
        "cassette: 1\nscenario: s\ntakes: [{iteration: 1, exchanges: [{request: {tools: x, messages: []}, response: {}}]}]",
        "a: [",
        "!!python/object:os.system {}",
    ],
)
def test_what_is_no_cassette_is_said_with_its_place(text):
    with pytest.raises(InputError, match=r"(?s)cassette some\.yaml cannot be read: .*repair it"):
        parse_cassette(text, "some.yaml")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text().map(clean_text),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text().map(clean_text), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
@example(["\n", "a\n", "a\n\n", "\n\n a\n\nb\n\n", "a\n b \nc", "a\nb ", "a\n\u2028b"])
def test_any_value_survives_yaml(value):
    assert parse_cassette_yaml(render_cassette_yaml(value)) == value
