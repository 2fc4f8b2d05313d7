"""Whatever an agent does while it is recorded, the replay of it does the same and asks nobody."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent as Loop
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from ci_agent_eval.engine.cassette import CassetteStore
from ci_agent_eval.engine.result import CassetteCounts
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.redaction import Redactor
from tests.integration.engine import rig
from tests.model_server import ModelServer, Script
from tests.samples import run_sample

MODELS = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}


def now() -> str:
    """A tool that takes nothing."""
    return "noon"


def echo(**given: Any) -> Any:
    """A tool that takes anything, and shows what it took and of which type."""
    return repr(given)


# What a model may write between the braces of its arguments.
keys = st.text(max_size=8)
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    # Beyond what a cassette's JSON holds exactly.
    | st.sampled_from([2**63, -(2**80), 1e308, 5e-324, "\N{NEXT LINE}", "é\u0301", "{}", "\t- a: 1"])
)  # fmt: skip
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
)
objects = st.dictionaries(keys, values, max_size=4)
raw = st.sampled_from(["", "{}", " {} ", "null", "[1]", '{"a": ', '{"a": 1, "a": 2}', '"{}"'])
ids = st.sampled_from([None, "call_1", "call_2", "same"])


@st.composite
def tool_call(draw):
    name = draw(st.sampled_from(["now", "echo", "echo", "nowhere"]))
    arguments = draw(st.just({}) | objects | raw) if name == "echo" else draw(st.just({}) | raw)
    chosen = draw(ids)
    return {"name": name, "arguments": arguments} | ({"id": chosen} if chosen else {})


texts = st.text(min_size=1, max_size=20) | st.sampled_from(["a\nb\n", " ", "yes: no"])
asks = st.lists(tool_call(), min_size=1, max_size=3, unique_by=lambda c: c.get("id") or id(c))
steps = st.builds(lambda text, calls: {"text": text, "tool_calls": calls}, st.none() | texts, asks)
answers = st.builds(lambda text: {"text": text}, texts)
rounds = st.builds(lambda asked, said: [*asked, said], st.lists(steps, max_size=3), answers)
conversations = st.lists(rounds, min_size=1, max_size=3)

WITHOUT_ARGUMENTS = [[{"tool_calls": [{"name": "now", "arguments": {}}]}, {"text": "noon"}]]
TWICE = [
    [
        {
            "text": "I look.",
            "tool_calls": [
                {"name": "now", "arguments": "", "id": "same"},
                {"name": "echo", "arguments": {"n": 2**70, "f": 1.0, "deep": {"a": {}}}},
            ],
        },
        {"tool_calls": [{"name": "now", "arguments": " {} ", "id": "same"}]},
        {"text": "noon"},
    ],
    *WITHOUT_ARGUMENTS,
]


@pytest.fixture(scope="module")
def server():
    with ModelServer([]) as running:
        yield running


def loop_agent(server, wire):
    provider = OpenAIProvider(base_url=server.base_url, api_key="k")
    return Loop(MODELS[wire]("gpt-5-mini", provider=provider), tools=[now, echo])


async def hold(folder, mode, agent, rounds):
    """Hold the conversation; return each round's end and turns, and what the cassette counted."""
    store = CassetteStore(mode, Redactor.from_environ({}))
    seen, messages = [], ()
    async with rig.session(now, echo, cassettes=store, cassette_mode=mode) as opened:
        with store.episode("e", folder, "s"):
            for number in range(rounds):
                result = await aitest_run(
                    agent, f"round {number}", session=opened, episode_id="e", messages=messages
                )
                messages = result.messages
                seen.append((result.stop_reason, result.error, turns_of(result.turns)))
    return seen, result.cassette


def turns_of(turns):
    """Return what has to be the same of a live turn and of its replay."""
    return [
        turn.model_copy(
            update={"source": None, "tool_calls": [without_time(c) for c in turn.tool_calls]}
        )
        for turn in turns
    ]


def without_time(call):
    return call.model_copy(update={"duration_ms": None})


@pytest.mark.parametrize("wire", run_sample([("chat",), ("responses",)], {0}))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(conversations)
@example(WITHOUT_ARGUMENTS)
@example(TWICE)
def test_a_pydantic_agent_is_replayed_as_it_was_recorded(server, wire, conversation):
    agent = loop_agent(server, wire)
    server.script = Script([step for one in conversation for step in one])
    with tempfile.TemporaryDirectory() as folder:
        live, recorded = asyncio.run(hold(Path(folder), "record", agent, len(conversation)))
        asked = len(server.requests)
        again, replayed = asyncio.run(hold(Path(folder), "replay", agent, len(conversation)))
    assert again == live
    assert replayed == CassetteCounts(hits=recorded.live)
    assert recorded.live > 0
    assert len(server.requests) == asked
