"""What a session keeps: the connections of agents' own models, and no more than of a few episodes."""

from __future__ import annotations

import asyncio
import functools
import time

import pytest
from pydantic_ai import Agent as Loop
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.wrapper import WrapperModel

from ci_agent_eval.engine.cassette.store import MAX_CACHED, CassetteStore
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.engine.session import MAX_IDLE, EngineSession
from ci_agent_eval.redaction import Redactor
from tests.integration.engine.rig import model_of
from tests.model_server import ModelServer


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
