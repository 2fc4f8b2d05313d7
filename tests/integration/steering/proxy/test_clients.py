"""The real clients of OpenAI and Anthropic in front of the proxy."""

from __future__ import annotations

import json

import anthropic
import openai
import pytest

from tests import llm_wire as wire
from tests.integration.steering.proxy.asking import BODY, STREAM, every_api
from tests.integration.steering.proxy.rig import JSON, MESSAGE, Rig, answer, answering, events
from tests.tables import each_row

FULL, ONE = wire.bash("pytest"), wire.bash("pytest tests/test_a.py")
USER = [{"role": "user", "content": "Fix the bug."}]


def openai_of(rig, **more):
    return openai.OpenAI(base_url=f"{rig.url}/v1", api_key="sk-test", max_retries=0, **more)


def anthropic_of(rig, **more):
    return anthropic.Anthropic(base_url=rig.url, api_key="sk-test", max_retries=0, **more)


def chat(rig, *, stream, messages=USER):
    """Ask for a completion and return text, calls and finish reason."""
    with openai_of(rig) as client:
        if not stream:
            done = client.chat.completions.create(model="gpt-5", messages=messages)
        else:
            with client.chat.completions.stream(model="gpt-5", messages=messages) as got:
                for _ in got:
                    pass
                done = got.get_final_completion()
    choice = done.choices[0]
    calls = [
        (c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls or []
    ]
    return choice.message.content or "", calls, choice.finish_reason


def responses(rig, *, stream, messages=USER, **more):
    """Ask for a response and return text, calls and status."""
    with openai_of(rig) as client:
        if not stream:
            done = client.responses.create(model="gpt-5", input=messages, **more)
        else:
            with client.responses.stream(model="gpt-5", input=messages, **more) as got:
                for _ in got:
                    pass
                done = got.get_final_response()
    calls = [(i.name, json.loads(i.arguments)) for i in done.output if i.type == "function_call"]
    return done.output_text, calls, done.status


def messages(rig, *, stream, messages=USER):
    """Ask for a message and return text, calls and stop reason."""
    asked = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": messages}
    with anthropic_of(rig) as client:
        if not stream:
            done = client.messages.create(**asked)
        else:
            with client.messages.stream(**asked) as got:
                for _ in got:
                    pass
                done = got.get_final_message()
    text = "".join(block.text for block in done.content if block.type == "text")
    calls = [(b.name, b.input) for b in done.content if b.type == "tool_use"]
    assert done.usage.output_tokens == 89
    return text, calls, done.stop_reason


ASK = {"chat": chat, "responses": responses, "messages": messages}
CALLED = {"chat": "tool_calls", "responses": "completed", "messages": "tool_use"}

both_ways = each_row("stream", [False, True], ids=["whole", "streamed"])


def said(api, stream, *calls, **more):
    return events(STREAM[api](*calls, **more)) if stream else answer(BODY[api](*calls, **more))


def results(body):
    """Return the results of calls in a request, as texts."""
    texts = []
    for item in body.get("messages", body.get("input")):
        blocks = item["content"] if isinstance(item.get("content"), list) else [item]
        kinds = {block.get("type", block.get("role")) for block in blocks}
        if kinds & {"tool", "tool_result", "function_call_output"}:
            texts += [block.get("output", block.get("content")) for block in blocks]
    return texts


@every_api
@both_ways
def test_the_model_reads_the_message_and_the_client_its_next_answer(api, stream):
    held, targeted = said(api, stream, FULL, text="Let me test."), said(api, stream, ONE)
    with Rig(answering(held, targeted)) as rig:
        text = "Let me test." if stream else ""
        assert ASK[api](rig, stream=stream) == (text, [ONE], CALLED[api])
    assert results(rig.asked[1].json) == [MESSAGE]


@each_row("status", [400, 401, 429, 500, 529])
def test_the_providers_errors_are_the_clients(status):
    body = {"error": {"message": "no", "type": "t", "code": "c"}}
    headers = [("retry-after", "7"), ("x-request-id", "req_1")]
    with Rig(answer(body, status=status, headers=headers)) as rig:
        with pytest.raises(openai.APIStatusError) as failed:
            chat(rig, stream=False)
        assert failed.value.status_code == status
        assert failed.value.response.headers["retry-after"] == "7"
        assert failed.value.request_id == "req_1"
        with pytest.raises(anthropic.APIStatusError):
            messages(rig, stream=True)


def test_a_session_is_named_by_a_header():
    with Rig(answer(wire.chat_body(FULL))) as rig:
        for session, requests in [("a", 2), ("b", 4), ("a", 5)]:
            with openai_of(rig, default_headers={"x-session-id": session}) as client:
                client.chat.completions.create(model="m", messages=USER)
            assert len(rig.asked) == requests


# Where there is no provider


def test_a_provider_that_is_not_there_is_an_error_of_the_api():
    with Rig(answer({}), upstream="http://127.0.0.1:1") as rig:
        with pytest.raises(openai.InternalServerError) as failed:
            chat(rig, stream=True)
        assert failed.value.status_code == 502
        assert failed.value.body["code"] == "upstream_unreachable"
        assert "http://127.0.0.1:1" in failed.value.body["message"]
        with pytest.raises(anthropic.InternalServerError) as failed:
            messages(rig, stream=True)
        assert failed.value.body["error"]["type"] == "api_error"
        assert failed.value.response.headers["content-type"] == JSON


def test_a_provider_that_says_nothing_is_a_timeout():
    async def silent(_asked, exchange):
        await exchange.wait_until_disconnected()

    with Rig(silent, read_timeout_s=0.2) as rig, pytest.raises(anthropic.APIStatusError) as failed:
        messages(rig, stream=False)
    assert failed.value.status_code == 504
    assert failed.value.body["error"]["type"] == "timeout_error"
