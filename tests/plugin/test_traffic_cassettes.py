"""Agents that call a model by the vendors' clients are recorded and replayed as they are."""

from __future__ import annotations

import json
import os

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step, call
from tests.replayed_results import normalize
from tests.samples import run_sample

AGENTS = """
import asyncio, threading
import anthropic, openai, pytest
from ci_agent_eval import conversation

BASE, ROOT = {base!r}, {root!r}
TOOL = {{"type": "object", "properties": {{"order": {{"type": "integer"}}}}}}
CHAT_TOOL = {{"type": "function", "function": {{"name": "lookup", "parameters": TOOL}}}}
KEYS = {{"api_key": "sk-test-of-nobody-at-all", "max_retries": 0}}

async def chat(message):
    "The documented loop: call tools until the model answers."
    messages = [{{"role": "user", "content": message}}]
    async with openai.AsyncOpenAI(base_url=BASE, **KEYS) as client:
        while True:
            answer = await client.chat.completions.create(
                model="gpt-5-mini", messages=messages, tools=[CHAT_TOOL]
            )
            said = answer.choices[0].message
            messages.append(said)
            if not said.tool_calls:
                return said.content
            for one in said.tool_calls:
                messages.append({{"role": "tool", "tool_call_id": one.id, "content": "shipped"}})

async def chat_streamed(message):
    async with openai.AsyncOpenAI(base_url=BASE, **KEYS) as client:
        stream = await client.chat.completions.create(
            model="gpt-5-mini", messages=[{{"role": "user", "content": message}}], stream=True,
            stream_options={{"include_usage": True}},
        )
        chunks = [chunk async for chunk in stream]
        return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)

def chat_in_thread(message):
    with openai.OpenAI(base_url=BASE, **KEYS) as client:
        asked = dict(model="gpt-5-mini", messages=[{{"role": "user", "content": message}}])
        return client.chat.completions.create(**asked).choices[0].message.content

async def responses(message):
    async with openai.AsyncOpenAI(base_url=BASE, **KEYS) as client:
        first = await client.responses.create(model="gpt-5-mini", input=message)
        second = await client.responses.create(
            model="gpt-5-mini", input=message, previous_response_id=first.id
        )
        return first.output_text + second.output_text

async def responses_streamed(message):
    async with openai.AsyncOpenAI(base_url=BASE, **KEYS) as client:
        async with client.responses.stream(model="gpt-5-mini", input=message) as stream:
            return (await stream.get_final_response()).output_text

async def messages(message):
    async with anthropic.AsyncAnthropic(base_url=ROOT, **KEYS) as client:
        answer = await client.messages.create(
            model="claude-sonnet-5", max_tokens=9, messages=[{{"role": "user", "content": message}}]
        )
        return answer.content[0].text

async def messages_streamed(message):
    async with anthropic.AsyncAnthropic(base_url=ROOT, **KEYS) as client:
        asked = [{{"role": "user", "content": message}}]
        async with client.messages.stream(
            model="claude-sonnet-5", max_tokens=9, messages=asked
        ) as stream:
            return await stream.get_final_text()

ALL = [
    chat, chat_streamed, chat_in_thread, responses, responses_streamed, messages, messages_streamed
]
"""
SUITE = (
    AGENTS
    + """
@pytest.mark.parametrize("agent", ALL)
async def test_as_agent(aitest_run, agent):
    result = await aitest_run(agent, f"{{agent.__name__}} today")
    assert "It is fine" in result.final_response

@pytest.mark.parametrize("agent", ALL)
async def test_in_plain_code(episode, agent):
    if asyncio.iscoroutinefunction(agent):
        said = await agent(f"{{agent.__name__}} plainly")
    else:
        said = await asyncio.to_thread(agent, "in a thread")
    assert "It is fine" in said

class Desk:
    async def respond(self, message):
        return await chat(message)

@conversation("desk", Desk)
async def test_conversation(agent):
    assert "fine" in (await agent.send("hello")).content
    assert "fine" in (await agent.send("hello again")).content
"""
)
SCRIPT = {
    "chat today": [Step(tool_calls=[call("lookup", order=7)]), "It is fine."],
    "*": ["It is fine."],
}
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def run(pytester, suite):
    """Run a suite against a script, or against no server; return the result and the episodes."""

    def run(source, *arguments, script=None):
        if script is None:
            pytester.makepyfile(test_suite=source.format(base=f"{NOWHERE}/v1", root=NOWHERE))
            result = suite.run_in_process("--episode-report-dir=out", *arguments)
        else:
            with ModelServer(script) as server:
                pytester.makepyfile(
                    test_suite=source.format(base=server.base_url, root=server.root_url)
                )
                result = suite.run_in_process("--episode-report-dir=out", *arguments)
        results = json.loads((pytester.path / "out/results.json").read_text())
        return result, results["episodes"]

    return run


@pytest.mark.parametrize(
    "arguments",
    run_sample([(("--episode-concurrency=20",),), (("-n2", "--episode-concurrency=20"),)], {0}),
)
def test_a_replay_is_the_recorded_run(run, pytester, arguments):
    result, recorded = run(SUITE, "--cassette=record", script=SCRIPT)
    result.assert_outcomes(passed=15)
    before = {path.name: path.read_bytes() for path in (pytester.path / "cassettes").iterdir()}
    assert len(before) == 15
    assert b"nobody-at-all" not in b"".join(before.values())
    result, replayed = run(SUITE, "--cassette=replay", *arguments)
    result.assert_outcomes(passed=15)
    for turn in (
        turn for episodes in (recorded, replayed) for turn in episodes[0]["trajectory"]["turns"]
    ):
        turn.pop("latency_ms", None)  # a conversation measures its replies
    assert normalize(replayed) == normalize(recorded)
    assert {
        path.name: path.read_bytes() for path in (pytester.path / "cassettes").iterdir()
    } == before


CHANGES = (
    AGENTS
    + """
from ci_agent_eval import SimulatedUser

async def ask(message):
    try:
        return await chat(message)
    except openai.APIStatusError as error:
        return f"sorry: {{error}}"

async def test_agent(aitest_run):
    assert (await aitest_run(ask, {prompt!r})).success

async def test_code(episode):
    with episode.turn("hello") as turn:
        turn.reply(await ask({prompt!r}))
    assert turn

def play(persona, history):
    return chat_in_thread(f"{{persona}}, message {{len(history)}}")

async def play_async(persona, history):
    return await asyncio.to_thread(play, persona, history)

@pytest.mark.parametrize("play", [play, play_async])
async def test_simulated(simulation, play):
    user = SimulatedUser({prompt!r}, model=play)
    result = await simulation(lambda message, **_: f"You said: {{message}}", user, max_turns=1)
    assert result.last_reply == "You said: It is fine."
"""
)


def test_a_refusal_that_the_agent_hides_fails_the_episode_with_its_difference(run):
    """And calls of a simulated user are replayed, and no turns of the agent."""
    run(CHANGES.replace("{prompt!r}", "'hello'"), "--cassette=record", script=SCRIPT)
    result, episodes = run(CHANGES.replace("{prompt!r}", "'hello'"), "--cassette=replay")
    result.assert_outcomes(passed=4)
    for episode in episodes:
        if "test_simulated" in episode["nodeid"]:
            said = [turn["content"] for turn in episode["trajectory"]["turns"]]
            assert said == ["It is fine.", "You said: It is fine."]
    result, episodes = run(CHANGES.replace("{prompt!r}", "'bye'"), "--cassette=replay")
    result.assert_outcomes(failed=4)
    for episode in episodes:
        assert (episode["outcome"], episode["cassette_misses"]) == ("error", 1)
        if "test_simulated" not in episode["nodeid"]:
            assert "changed: messages[0].content" in episode["reason"]
            assert "-hello\n+bye" in episode["reason"]


CONNECTS = """
import socket
import pytest

@pytest.fixture(scope="session", autouse=True)
def resolve():
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("session.invalid", 443)

def connect(host):
    with pytest.raises(OSError) as caught:
        socket.getaddrinfo(host, 443)
    return type(caught.value).__name__

@pytest.mark.episode(evidence="none")
def test_closed(episode):
    assert connect("model.invalid") == "RefusedConnectionError"
    assert connect("database.invalid") == "gaierror"
    socket.getaddrinfo("localhost", 443)
"""


def test_connections_beyond_this_machine_are_refused_in_replay(pytester, suite):
    pytester.makeini("[pytest]\ncassette_allowed_hosts = database.invalid\n")
    pytester.makepyfile(CONNECTS)
    suite.run_in_process("--cassette=replay").assert_outcomes(passed=1)
    suite.run_in_process("--cassette=auto").assert_outcomes(failed=1)


UNATTRIBUTED = (
    AGENTS
    + """
import queue

tasks = queue.Queue()

def work():
    while (task := tasks.get()) is not None:
        task[1].append(try_to_ask(task[0]))
        task[2].set()

def try_to_ask(message):
    try:
        return chat_in_thread(message)
    except openai.APIStatusError as error:
        return "It is fine."

@pytest.fixture(scope="session")
def worker():
    thread = threading.Thread(target=work)
    thread.start()
    yield
    tasks.put(None)
    thread.join()

BOTH = asyncio.Barrier(2)

@pytest.mark.episode(evidence="none")
@pytest.mark.parametrize("number", range(2))
async def test_queue(worker, episode, number):
    await BOTH.wait()
    said, done = [], threading.Event()
    tasks.put((f"question {{number}}", said, done))
    await asyncio.to_thread(done.wait)
    await BOTH.wait()
    assert said == ["It is fine."]
"""
)


def test_a_call_of_no_known_episode_fails_those_that_run_in_replay(run):
    result, _ = run(UNATTRIBUTED, "--cassette=record", "--episode-concurrency=2", script=SCRIPT)
    result.assert_outcomes(passed=2)
    result, episodes = run(UNATTRIBUTED, "--cassette=replay", "--episode-concurrency=2")
    result.assert_outcomes(failed=2)
    for episode in episodes:
        assert "a model call belongs to none of the running episodes for sure" in episode["reason"]


CASES = (
    AGENTS
    + """
@pytest.mark.parametrize("order", ["seven", "eight", "nine"])
@pytest.mark.episode("orders", iterations=2)
async def test_orders(aitest_run, order):
    result = await aitest_run(chat, f"order {{order}}")
    assert result.final_response == f"Number {{order}}."

@pytest.mark.parametrize(
    "order", [pytest.param("ten", marks=pytest.mark.episode("the tenth"))]
)
async def test_order(aitest_run, order):
    assert (await aitest_run(chat, f"order {{order}}")).success
"""
)


def test_cases_of_one_scenario_keep_their_recordings(run, pytester):
    script = {f"order {n}": [f"Number {n}."] for n in ("seven", "eight", "nine", "ten")}
    run(CASES, "--cassette=record", script=script)
    result, _ = run(CASES, "--cassette=replay")
    result.assert_outcomes(passed=7)
    names = sorted(path.name.rpartition("-")[0] for path in pytester.path.glob("cassettes/*"))
    assert names == ["orders_eight_", "orders_nine_", "orders_seven_", "the_tenth"]

    (tenth,) = pytester.path.glob("cassettes/the_tenth*")
    tenth.write_text(tenth.read_text().replace("status: 200", "status: fine", 1))
    _, (episode,) = run(CASES, "--cassette=replay", "-k", "ten")
    problem = (
        "an answer has the status 'fine', which is not an HTTP status; repair it, or delete it"
    )
    assert episode["outcome"] == "error"
    assert f"cassette cassettes/{tenth.name} cannot be read: {problem}" in episode["reason"]


WITHOUT_KEYS = """
import os
import anthropic, openai
from pydantic_ai import Agent

teller = Agent("openai-chat:gpt-5-mini")

async def test_agent(aitest_run):
    assert (await aitest_run(teller, "hello")).final_response == "It is fine."

async def test_plain(episode):
    assert (await teller.run("hello")).output == "It is fine."

def test_sdks(episode):
    with openai.OpenAI() as client:
        asked = dict(model="gpt-5-mini", messages=[{{"role": "user", "content": "hi"}}])
        assert client.chat.completions.create(**asked).choices[0].message.content == "It is fine."
    with anthropic.Anthropic() as client:
        asked = dict(max_tokens=9, messages=[{{"role": "user", "content": "hi"}}])
        said = client.messages.create(model="claude-haiku-4-5", **asked)
        assert said.content[0].text == "It is fine."
"""


def test_a_replay_needs_no_key_for_any_sdk(run, monkeypatch):
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
    with ModelServer(SCRIPT) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
        for name in keys:
            monkeypatch.setenv(name, "k")
        run(WITHOUT_KEYS, "--cassette=record")[0].assert_outcomes(passed=3)
        asked = len(server.requests)
        for name in keys:
            monkeypatch.delenv(name)
        run(WITHOUT_KEYS, "--cassette=replay")[0].assert_outcomes(passed=3)
        assert len(server.requests) == asked
    assert not any(name in os.environ for name in keys)
