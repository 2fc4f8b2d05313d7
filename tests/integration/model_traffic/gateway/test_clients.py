"""Real SDKs in child processes: recorded, replayed, refused."""

from __future__ import annotations

import pytest

from ci_agent_eval.model_traffic.gateway.server import serve_episode
from tests.integration.model_traffic.gateway.rig import (
    ALL,
    APIS,
    STEPS,
    Tape,
    ask,
    ask_through,
    new_recorder,
    provider_environ,
)
from tests.model_server import ModelServer


@pytest.fixture
def server():
    with ModelServer(STEPS) as server:
        yield server


def test_calls_are_recorded_and_replayed_as_the_client_gets_them_directly(server):
    environ = provider_environ(server)
    tape = Tape()
    recorder, replaying = new_recorder(player=tape), new_recorder(player=tape)
    direct = ask(environ, *ALL)
    with serve_episode(recorder, environ) as address:
        recorded = ask_through(address, *ALL)
    tape.is_replay = True
    with serve_episode(replaying, {}) as address:
        replayed = ask_through(address, *ALL)
    assert direct == recorded == replayed
    assert len(server.requests) == 2 * len(ALL)
    for name, asked in zip(2 * ALL, server.requests, strict=True):
        key = "sk-secret-of-anthropic" if "anthropic" in name else "sk-secret-of-openai"
        given = asked.headers.get("x-api-key") or asked.headers["authorization"]
        assert given.removeprefix("Bearer ") == key
    for recording, source in ((recorder, "live"), (replaying, "replayed")):
        assert [call.format.name for call in recording.calls] == [*APIS, *APIS]
        for call in recording.calls:
            assert "sk-secret" not in f"{vars(call)}"
            assert (call.state, call.status, call.source) == ("complete", 200, source)
            assert call.answer.text == "Let me look."
            assert [(tool.name, tool.arguments) for tool in call.answer.tool_calls] == [
                ("get_balance", {"account": "a"})
            ]
            assert (call.answer.tokens.input, call.answer.tokens.output) == (100, 20)
    assert recorder.calls[0].url == f"{server.base_url}/chat/completions"


def test_a_refused_call_reaches_no_provider_and_is_not_retried(server):
    recorder = new_recorder(check_limits=lambda _: "the budget of 3 calls is used up")
    with serve_episode(recorder, provider_environ(server)) as address:
        got = ask_through(address, *ALL)
    for name in ALL:
        (error,) = got[name]
        assert error["error"] == "BadRequestError"
        assert "the budget of 3 calls is used up" in error["text"]
    assert [call.state for call in recorder.calls] == ["refused"] * len(ALL)
    assert not server.requests


def test_in_replay_a_subprocess_gets_no_key_and_no_address(server):
    environ = provider_environ(server)
    with serve_episode(new_recorder(player=Tape(is_replay=True)), environ) as address:
        child = {**address.environ, **address.build_environment()}
    assert "sk-secret" not in f"{child}"
    assert server.base_url not in f"{child}"
