"""Endpoints as agents: fields of requests and responses, and failures."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from ci_agent_eval.engine.adapters.http import HTTPAgent
from ci_agent_eval.errors import InputError
from tests.integration.engine.rig import run_agent
from tests.tables import each_row


@contextmanager
def endpoint(answer):
    """An endpoint on the loopback; `answer(body)` gives what it responds."""
    asked = []

    async def respond(request):
        asked.append((await request.json(), dict(request.headers)))
        return answer(asked[-1][0])

    app = Starlette(routes=[Route("/chat", respond, methods=["POST"])])
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    socket.listen(64)  # from here on a client waits for the server and is not refused
    thread = threading.Thread(target=server.run, args=([socket],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/chat", asked
    finally:
        server.should_exit = True
        thread.join(10)
        socket.close()


def test_an_endpoint_is_an_agent():
    answer = {
        "text": "1500",
        "tool_calls": [{"name": "balance", "arguments": {"a": 1}, "result": 1500}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
        "cost_usd": 0.5,
    }
    with endpoint(lambda body: JSONResponse(answer)) as (url, asked):
        first = run_agent(HTTPAgent(url, headers={"X-Key": "k"}))
        run_agent(HTTPAgent(url), "and now?", messages=first.messages)
    assert (first.stop_reason, first.final_response) == ("completed", "1500")
    assert (first.token_usage.total, first.cost_usd) == (10, 0.5)
    assert first.tool_call_arg("balance", "a") == 1
    assert asked[0][0] == {"message": "my balance?", "messages": []}
    assert asked[0][1]["x-key"] == "k"
    assert [m["content"] for m in asked[1][0]["messages"]] == ["my balance?", "1500"]


def test_an_endpoints_own_forms_are_mapped():
    def answer(body):
        return JSONResponse({"choices": [{"message": {"content": body["input"]["q"].upper()}}]})

    with endpoint(answer) as (url, _):
        agent = HTTPAgent(url, body={"input": {"q": "{prompt}"}}, text="/choices/0/message/content")
        assert run_agent(agent, "hi").final_response == "HI"


@each_row(
    ("response", "said"),
    [
        (Response("<html>", 200), "answered no JSON: '<html>'"),
        (JSONResponse({"t": 1}), "answered without a text at /text"),
        (Response("down", 503), "answered with status 503: 'down'"),
        (Response("no", 429), "answered with status 429"),
        (RedirectResponse("http://127.0.0.1:1/", 300), "answered with status 300"),
        (JSONResponse({"text": "x" * 5000}), "answered more than 4000 bytes"),
    ],
)
def test_an_endpoint_that_gives_no_answer_is_the_worlds_error(response, said):
    with endpoint(lambda body: response) as (url, _):
        result = run_agent(HTTPAgent(url + "?key=secret", cap_bytes=4000))
    assert (result.stop_reason, result.rate_limited) == ("model_error", int("429" in said))
    assert said in result.error
    assert "secret" not in f"{result.error}{result.agent}"


def choice(content, finish_reason):
    return {"choices": [{"message": {"content": content}, "finish_reason": finish_reason}]}


@each_row(
    ("response", "stop"),
    [
        (JSONResponse(choice("You have", "length")), "truncated"),
        (JSONResponse(choice(None, "content_filter")), "refusal"),
        (JSONResponse(choice(None, "stop")), "empty_answer"),
        (JSONResponse({"error": {"code": "context_length_exceeded"}}, 400), "context_window"),
        (JSONResponse({"error": {"code": "invalid_api_key"}}, 401), "model_error"),
        (Response("[" * 100_000, 400), "model_error"),
        (JSONResponse(choice("You have 1500.", "stop")), "completed"),
    ],
)
def test_an_endpoint_that_says_how_its_model_finished(response, stop):
    with endpoint(lambda body: response) as (url, _):
        at = "/choices/0"
        agent = HTTPAgent(url, text=f"{at}/message/content", finish_reason=f"{at}/finish_reason")
        result = run_agent(agent)
    assert result.stop_reason == stop
    assert result.outcome == {"completed": "passed", "model_error": "error"}.get(stop, "failed")


def test_an_endpoint_nobody_listens_at():
    result = run_agent(HTTPAgent("http://127.0.0.1:9/chat"))
    assert result.stop_reason == "model_error"
    assert "could not be asked: ConnectError" in result.error


@each_row("wrong", [{"url": "ftp://x"}, {"url": ""}, {"url": "http://x", "text": "text"}])
def test_an_endpoint_declared_wrongly_names_the_field(wrong):
    with pytest.raises(InputError, match=r"HTTPAgent\.(url|text)"):
        HTTPAgent(**wrong)
