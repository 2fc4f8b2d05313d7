"""Models that replace a PydanticAI agent's own: each of their requests counts once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.models import Model

from ci_agent_eval.engine.cassette import CassetteStore
from ci_agent_eval.engine.limits import RunLimits
from ci_agent_eval.engine.result import CassetteCounts
from ci_agent_eval.engine.run import run_adapter
from ci_agent_eval.redaction import Redactor
from tests.integration.engine.rig import model_of
from tests.model_server import ModelServer
from tests.model_server.script import call

ASKS = {"tool_calls": [call("look_up", topic="tea")]}
SCRIPT = {"main": [ASKS, "It is {tool}"], "tea": ["green"]}


@pytest.fixture
def server():
    with ModelServer(SCRIPT) as running:
        yield running


def look_up(topic: str) -> str:
    return {"tea": "green"}[topic]


@dataclass
class ReplaceModel(AbstractCapability[Any]):
    model: Model

    async def before_model_request(self, ctx, request_context):
        return replace(request_context, model=self.model)


@dataclass
class ReplaceModelLast(ReplaceModel):
    def get_ordering(self):
        return CapabilityOrdering(position="innermost")


@dataclass
class WatchEvents(AbstractCapability[Any]):
    """Reads the events of the run, so its model streams."""

    async def wrap_run_event_stream(self, ctx, *, stream) -> AsyncIterator[Any]:
        async for event in stream:
            yield event


def build_agent(server, *capabilities):
    return Agent(model_of(server), tools=[look_up], capabilities=capabilities)


def overrides_it(server, model):
    agent = build_agent(server)
    return agent, agent.override(model=model)


def replaces_it(server, model):
    return build_agent(server, ReplaceModel(model)), nullcontext()


def replaces_it_last(server, model):
    return build_agent(server, ReplaceModelLast(model)), nullcontext()


def streams_it(server, model):
    del model
    return build_agent(server, WatchEvents()), nullcontext()


def run_case(case, server, **options):
    async def once():
        async with model_of(server, "gpt-5-nano") as model:
            agent, block = case(server, model)
            with block:
                return await run_adapter(agent, "main", clock=time.monotonic, **options)

    return asyncio.run(once())


CASES = (overrides_it, replaces_it, replaces_it_last, streams_it)


@pytest.mark.parametrize("case", CASES)
def test_each_request_counts_once_and_is_measured(server, case):
    result = run_case(case, server, limits=RunLimits(max_turns=2, tokens=240))
    assert (result.stop_reason, result.error) == ("completed", None)
    assert result.final_response == "It is green"
    assert (len(server.requests), result.token_usage.total) == (2, 240)
    assert result.trajectory.agents == ()
    assert result.traffic.requests == 2
    model = "gpt-5-mini" if case is streams_it else "gpt-5-nano"
    for turn in result.trajectory.agent_turns:
        assert (turn.requested_model, turn.response_model) == (model, model)
        assert turn.latency_ms is not None


@pytest.mark.parametrize("case", CASES)
def test_its_requests_are_on_the_cassette(tmp_path, server, case):
    results = []
    for mode in ("record", "replay"):
        with CassetteStore(mode, Redactor()).episode("e", tmp_path, "s") as session:
            results.append(run_case(case, server, cassette_session=session))
    live, again = results
    assert live.final_response == again.final_response == "It is green"
    assert (live.cassette, again.cassette) == (CassetteCounts(live=2), CassetteCounts(hits=2))
    assert {turn.source for turn in again.trajectory.agent_turns} == {"replayed"}
    assert len(server.requests) == 2
