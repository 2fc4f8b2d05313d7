"""The data of a response's traffic is that of the turn which the whole conversation gives."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest
from pydantic_ai.messages import ModelResponse

from ci_agent_eval.engine.own_requests import observe_request
from ci_agent_eval.engine.response_stamp import ResponseTraffic, get_traffic
from ci_agent_eval.model_traffic import attribution
from ci_agent_eval.model_traffic.pricing import price_call
from ci_agent_eval.model_traffic.trajectory import build_trajectory
from tests.traffic_wire import JSON, WIRES

LOOKUP = ("lookup", {"order": 7})
SCHEMA = {"type": "object", "properties": {"usd": {"type": "integer"}}}
SCHEMAS = {
    "openai-chat": {"response_format": {"json_schema": {"schema": SCHEMA}}},
    "openai-responses": {"text": {"format": {"schema": SCHEMA}}},
    "anthropic-messages": {"output_config": {"format": {"schema": SCHEMA}}},
    "gemini": {"generationConfig": {"temperature": 0.5, "responseJsonSchema": SCHEMA}},
    "bedrock-converse": {
        "outputConfig": {
            "textFormat": {"structure": {"jsonSchema": {"schema": json.dumps(SCHEMA)}}}
        }
    },
}
TYPED = '{"usd": 1500}'
every_format = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)


def request_of(wire):
    more = {**wire.temperature(0.5), **SCHEMAS[wire.name]}
    return json.dumps(wire.build_request("Where is it?", LOOKUP, "c1", "in Rome", **more)).encode()


def plain(wire, *calls, text=None):
    return [json.dumps(wire.build_body(*calls, text=text)).encode()]


ANSWERS = {
    "typed": (200, JSON, lambda wire: plain(wire, text=TYPED)),
    "text": (200, JSON, lambda wire: plain(wire, text="Rome.")),
    "tool call": (200, JSON, lambda wire: plain(wire, LOOKUP, text=TYPED)),
    "streamed": (200, None, lambda wire: wire.build_events(text=TYPED)),
    "streamed tool call": (200, None, lambda wire: wire.build_events(LOOKUP, text=TYPED)),
    "broken off": (200, None, lambda wire: wire.build_events(text="Hello world")[:-2]),
    "empty": (200, JSON, plain),
    "no bytes": (200, JSON, lambda _: []),
    "unreadable": (200, JSON, lambda _: [b"{nope"]),
    "error": (500, JSON, lambda _: [b'{"error": {"message": "overloaded"}}']),
}


def observe(*requests):
    """Return the data of a response and the recorder of its requests."""
    recorders = []

    async def request():
        recorder = attribution.find_recorder()
        recorders.append(recorder)
        for wire, body, status, headers, chunks in requests:
            call = recorder.start_call(wire.format, wire.url, body)
            call.set_response(status, wire.event_headers if headers is None else headers)
            for chunk in chunks:
                call.feed(chunk)
            call.end()
        return ModelResponse(parts=[])

    ticks = itertools.count(0.0, 1.0)
    response = asyncio.run(observe_request(request(), lambda: next(ticks)))
    return get_traffic(response), recorders[0]


def read_last_turn(recorder):
    """Return the data of the turn that the whole conversation gives."""
    turns = build_trajectory(recorder.calls[-1:]).select(1, len(recorder.calls))
    if not turns or turns[-1].role != "assistant":
        return ResponseTraffic()
    turn, price = turns[-1], price_call(recorder.calls[-1])
    names = ResponseTraffic.model_fields.keys() - {"reasoning_tokens", "vendor_priced_model"}
    return ResponseTraffic(
        **{name: getattr(turn, name) for name in names},
        reasoning_tokens=turn.tokens and turn.tokens.reasoning,
        vendor_priced_model=price.model if price and price.is_vendor_price else None,
    )


@every_format
@pytest.mark.parametrize("kind", ANSWERS)
def test_the_data_are_those_of_the_turn(wire, kind):
    status, headers, build = ANSWERS[kind]
    found, recorder = observe((wire, request_of(wire), status, headers, build(wire)))
    assert found == read_last_turn(recorder)


@every_format
def test_a_typed_answer_has_model_settings_finish_reason_and_value(wire):
    found, _ = observe((wire, request_of(wire), 200, JSON, plain(wire, text=TYPED)))
    assert found.requested_model
    assert found.settings["temperature"] == 0.5
    assert (found.typed_output, found.finish_reason) == ({"usd": 1500}, "stop")
    assert (found.first_byte_ms, found.error) == (1000, None)


@every_format
def test_the_conversation_is_not_parsed(wire):
    _, recorder = observe((wire, request_of(wire), 200, JSON, plain(wire, text=TYPED)))
    assert "request" not in vars(recorder.calls[-1])


@every_format
def test_an_unreadable_request_is_the_error_of_its_answer(wire):
    found, recorder = observe((wire, b"{", 200, JSON, plain(wire, text=TYPED)))
    assert found == read_last_turn(recorder)
    assert found.error == "the request could not be read: the body is no JSON object"
    assert (found.requested_model, found.settings, found.typed_output) == (None, {}, None)


@every_format
def test_of_a_repeated_request_the_last_one_counts(wire):
    failed = (wire, request_of(wire), *ANSWERS["error"][:2], ANSWERS["error"][2](wire))
    found, recorder = observe(failed, (wire, request_of(wire), 200, JSON, plain(wire, text="Hi")))
    assert found == read_last_turn(recorder)
    assert (found.first_byte_ms, found.finish_reason) == (1000, "stop")


def test_a_response_without_traffic_has_no_data():
    assert observe()[0] == ResponseTraffic()
