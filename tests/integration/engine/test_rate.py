"""Connections and rates of an engine's requests."""

from __future__ import annotations

import asyncio
import functools
import time
from contextlib import nullcontext

import pytest
from pydantic_ai import Agent as Loop
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.wrapper import WrapperModel

from ci_agent_eval.engine.cassette.store import MAX_CACHED, CassetteStore
from ci_agent_eval.engine.declarations import Provider
from ci_agent_eval.engine.rate_limited_model import (
    MAX_RATE_LIMIT_RETRIES,
    MAX_RETRY_AFTER_S,
    MAX_TRANSIENT_RETRIES,
)
from ci_agent_eval.engine.rate_limits import Limiter
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.engine.session import MAX_IDLE, EngineSession
from ci_agent_eval.redaction import Redactor
from tests.integration.engine.rig import Clock, agent, go, model_of, run, session
from tests.model_server import ModelServer
from tests.tables import each_row

# Limits of a provider, against a server that says no; time passes only where something sleeps.


ONE_TURN = {"text": "hi", "usage": {"input": 400, "output": 100}}


def runs(script, count, clock, *, one_after_another=False, agents=1, **options):
    """Run `count` episodes against a script; return the results and the server."""

    async def many(server):
        async with session(clock=clock) as opened:
            given = [agent(server, **options) for _ in range(agents)]
            work = [
                aitest_run(given[n % agents], f"episode {n:03}", session=opened)
                for n in range(count)
            ]
            if one_after_another:
                return [await one for one in work]
            return await asyncio.gather(*work)

    with ModelServer(script) as server:
        return go(many(server)), server


def test_the_servers_own_wait_is_kept_and_counted():
    clock = Clock()
    result = run([{"status": 429, "retry_after": "7"}, "hi"], clock=clock)
    assert (result.success, result.rate_limited) == (True, 1)
    assert sum(clock.slept) == 7
    assert result.duration_ms == 7000
    assert result.trajectory.latencies_ms == (0,)


def test_without_a_hint_each_wait_is_longer():
    clock = Clock()
    result = run([429, 429, 429, "hi"], clock=clock)
    assert (result.success, result.rate_limited) == (True, 3)
    assert [s for s in clock.slept if s] == [0.5, 1.0, 2.0]


def test_a_server_that_never_relents_is_asked_so_often_and_no_more():
    clock = Clock()
    (result,), server = runs([429], 1, clock)
    assert len(server.requests) == 1 + MAX_RATE_LIMIT_RETRIES
    assert result.rate_limited == 1 + MAX_RATE_LIMIT_RETRIES
    assert (result.stop_reason, result.outcome) == ("model_error", "error")
    assert "answered with status 429: " in result.error


@each_row("refusal", [{"retry_after": "7200"}, {"code": "insufficient_quota"}])
def test_a_wait_of_hours_or_an_empty_account_is_a_no(refusal):
    clock = Clock()
    (result,), server = runs([{"status": 429, **refusal}], 1, clock)
    assert (len(server.requests), result.stop_reason) == (1, "model_error")
    assert "answered with status 429: " in result.error
    assert sum(clock.slept) <= MAX_RETRY_AFTER_S


@each_row("status", [500, 502, 503])
def test_a_passing_failure_is_tried_again_by_nobody_but_us(status):
    (result,), server = runs([status] * MAX_TRANSIENT_RETRIES + ["hi"], 1, Clock())
    assert (result.success, result.rate_limited) == (True, 0)
    assert len(server.requests) == 1 + MAX_TRANSIENT_RETRIES
    assert {asked.headers["x-stainless-retry-count"] for asked in server.requests} == {"0"}
    (result,), server = runs([status], 1, Clock())
    assert (result.stop_reason, len(server.requests)) == ("model_error", 1 + MAX_TRANSIENT_RETRIES)


def test_requests_a_minute_are_kept_by_all_episodes_together():
    clock = Clock()
    results, server = runs(["hi"], 10, clock, rpm=4, agents=2)
    assert all(result.success for result in results)
    assert len(server.requests) == 10
    # 4 at once, 4 a minute later, 2 another minute later.
    assert clock.now - 1000 == pytest.approx(120, abs=1)


def test_tokens_a_minute_are_what_the_answers_say():
    clock = Clock()
    results, _ = runs([ONE_TURN], 4, clock, tpm=1000, one_after_another=True)
    assert all(result.success for result in results)
    # 500 tokens each: two in the first minute, two in the second.
    assert clock.now - 1000 == pytest.approx(60, abs=1)


def test_a_guess_of_a_requests_tokens_is_kept_until_the_answer():
    clock = Clock()
    results, server = runs([ONE_TURN], 3, clock, tpm=1000, max_tokens=900)
    assert all(result.success for result in results)
    assert server.peak == 1


def test_of_two_declarations_of_one_provider_the_tighter_holds():
    opened = session()
    first = opened.get_limiter(Provider("openai:m", rpm=10))
    second = opened.get_limiter(Provider("openai/m", rpm=5, tpm=100))
    assert first is second
    assert (first.windows.requests.limit, first.windows.tokens.limit) == (5, 100)
    assert opened.get_limiter(Provider("openai:m", rpm=50)).windows.requests.limit == 5
    assert opened.get_limiter(Provider("openai:other")) is not first


def test_one_episodes_refusal_holds_the_next_ones_request_too():
    clock = Clock()
    limiter = Limiter.create(clock, clock.sleep)

    async def next_one():
        limiter.windows.pause(30)
        async with limiter.hold(0, nullcontext):
            return clock.now

    assert go(next_one()) == 1030


# What a session keeps: the connections of agents' own models, and no more than of a few episodes.


def on_a_loop(test):
    @functools.wraps(test)
    def run(*arguments, **named):
        asyncio.run(test(*arguments, **named))

    return run


def client_of(model: OpenAIChatModel):
    return model.client._client


def a_session() -> EngineSession:
    return EngineSession({}, time.monotonic)


async def ask(session: EngineSession, model) -> None:
    result = await aitest_run(Loop(model), "hello", session=session)
    assert result.final_response == "hi", result


@on_a_loop
async def test_runs_one_after_the_other_use_the_same_client():
    with ModelServer(["hi"]) as server:
        model = model_of(server)
        client = client_of(model)
        async with a_session() as session:
            for _ in range(3):
                await ask(session, model)
                assert client_of(model) is client
                assert not client.is_closed
        assert client.is_closed


@on_a_loop
async def test_of_models_that_are_used_once_only_the_last_stay_open():
    with ModelServer(["hi"]) as server:
        models = [model_of(server) for _ in range(MAX_IDLE + 2)]
        async with a_session() as session:
            for model in models:
                await ask(session, model)
            assert [client_of(m).is_closed for m in models] == [True] * 2 + [False] * MAX_IDLE
        assert all(client_of(model).is_closed for model in models)


@pytest.mark.parametrize("times", [1, 2])
@on_a_loop
async def test_a_model_with_an_entrance_of_its_own_is_entered_for_each_run(times):
    seen = []

    class Entered(WrapperModel):
        async def __aenter__(self):
            seen.append("in")
            return await super().__aenter__()

        async def __aexit__(self, *error):
            seen.append("out")
            return await super().__aexit__(*error)

    with ModelServer(["hi"]) as server:
        model = Entered(model_of(server))
        async with a_session() as session:
            for _ in range(times):
                await ask(session, model)
            assert seen == ["in", "out"] * times


def test_cassettes_that_were_read_are_not_all_kept(tmp_path):
    store = CassetteStore("replay", Redactor())
    for number in range(MAX_CACHED + 5):
        with store.episode(f"episode {number}", tmp_path, f"scenario {number}"):
            pass
    assert len(store._read) == MAX_CACHED
