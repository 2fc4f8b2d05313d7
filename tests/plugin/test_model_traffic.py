"""Plain code that calls a model with an SDK: its calls become the episode, with no call of ours."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.model_traffic import hooks
from ci_agent_eval.pytest_plugin.episodes.traffic import CLIENTS
from tests.model_server import ModelServer
from tests.model_server.script import Step, call

HEAD = """
import json
import pytest
from openai import AsyncOpenAI, OpenAI
from anthropic import Anthropic

URL = {url!r}
openai = OpenAI(base_url=URL, api_key="k")
anthropic = Anthropic(base_url=URL.removesuffix("/v1"), api_key="k")


def balance(account):
    return {{"checking": "$5"}}[account]


def ask(prompt, model="gpt-5-mini"):
    messages = [{{"role": "user", "content": prompt}}]
    while True:
        answer = openai.chat.completions.create(model=model, messages=messages, temperature=0)
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content
        for made in message.tool_calls:
            result = balance(**json.loads(made.function.arguments))
            messages.append({{"role": "tool", "tool_call_id": made.id, "content": result}})
"""

BALANCE = [Step(tool_calls=[call("balance", account="checking")]), Step(text="You have {tool}.")]
RUNAWAY = [Step(tool_calls=[call("balance", account="checking")])] * 50


@pytest.fixture
def suite(pytester, suite):
    """Run tests against a scripted model; returns pytest's result, the episodes and the server."""

    def run(script, source, *arguments):
        with ModelServer(script) as server:
            pytester.makepyfile(test_suite=HEAD.format(url=server.base_url) + source)
            result = suite.run_in_process("--episode-report-dir=out", *arguments)
        results = json.loads((pytester.path / "out/results.json").read_text())
        return result, results["episodes"], server

    return run


def turns_of(episode):
    return episode["trajectory"]["turns"]


KINDS = """
import asyncio, threading
from ci_agent_eval import conversation
from ci_agent_eval.engine import Agent, Provider

def test_without_a_turn(episode):
    assert ask("My balance?") == "You have $5."
    assert episode.tool_calls[0].name == "balance"

def test_reply(episode):
    with episode.turn("My balance?") as turn:
        turn.reply(ask("Question: My balance?").upper())
    assert [turn.role for turn in episode.turns] == ["user", "assistant"]

def test_own_tokens_and_calls(episode):
    with episode.turn("My balance?") as turn:
        answer = ask("My balance?")
        turn.tool_call("lookup", result=5)
        turn.reply(answer, tokens={"input": 7, "output": 1}, cost_usd=0.5)
    assert answer

def test_mix(episode):
    ask("one")
    with episode.turn("Number two"):
        ask("two")
    assert ask("three") == "third"

def test_live(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    assert [turn.content for turn in episode.turns] == ["Hello", "Hi"]

def test_scripted(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi", source="scripted")
    assert episode.turns[-1].source == "scripted"

def test_refused(episode):
    assert ask("Do it")

@pytest.mark.episode(allowed_stops="refusal")
def test_allowed(episode):
    assert ask("Do it")

def test_failing(episode):
    ask("Fail")

@conversation("hello", lambda: ask)
def test_good(agent):
    assert agent.send("Hello").content == "Hi"

@pytest.mark.episode(budgets={"tool_calls": 2})
@conversation("runaway", lambda: ask)
def test_bad(agent):
    agent.send("Go on for ever")

async def test_both(aitest_run, episode):
    await asyncio.to_thread(ask, "one")
    result = await aitest_run(Agent(Provider("openai:gpt-5-mini", base_url=URL)), "two")
    assert result.final_response == "second"

async def test_all_ways(episode):
    async with AsyncOpenAI(base_url=URL, api_key="k") as client:
        asked = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "one"}]}
        await client.chat.completions.create(**asked)
        asked["messages"] = [{"role": "user", "content": "two"}]
        async for chunk in await client.chat.completions.create(**asked, stream=True):
            pass
    await asyncio.to_thread(ask, "three")
    thread = threading.Thread(target=ask, args=("three",))
    thread.start()
    await asyncio.to_thread(thread.join)
    anthropic.messages.create(
        model="claude-haiku-4-5", max_tokens=10, messages=[{"role": "user", "content": "one"}]
    )
    assert len(episode.turns) == 10

@pytest.mark.parametrize("n", range(6))
async def test_at_once(episode, n):
    assert await asyncio.to_thread(ask, f"My balance? {n}") == "You have $5."
"""
SCRIPT = {
    "My balance?": BALANCE,
    "one": ["first"],
    "two": ["second"],
    "three": ["third"],
    "Hello": ["Hi"],
    "Do it": [Step(text="I will not.", finish_reason="content_filter")],
    "Fail": [BALANCE[0], *[Step(status=500)] * 9],
    "Go": RUNAWAY,
}


def test_calls_of_plain_code_become_the_episode(suite):
    result, found, server = suite(SCRIPT, KINDS, "--episode-concurrency=5")
    result.assert_outcomes(passed=16, failed=3)
    episodes = {episode["nodeid"].rpartition("::")[2]: episode for episode in found}
    expect_all_that_a_call_tells(episodes["test_without_a_turn"])
    user, reply = turns_of(episodes["test_reply"])
    assert (user["content"], reply["content"]) == ("My balance?", "YOU HAVE $5.")
    assert reply["tokens"] == {"input": 200, "output": 40}
    assert [made["result"] for made in reply["tool_calls"]] == ["$5"]
    assert reply["response_model"] == "gpt-5-mini"
    _, reply = turns_of(episodes["test_own_tokens_and_calls"])
    assert (reply["tokens"], reply["cost_usd"]) == ({"input": 7, "output": 1}, 0.5)
    assert [made["name"] for made in reply["tool_calls"]] == ["lookup"]
    # A turn without a reply has a turn for each answer, and calls around it are turns too.
    assert [turn["content"] for turn in turns_of(episodes["test_mix"])] == [
        "one", "first", "Number two", "second", "three", "third",
    ]  # fmt: skip
    assert episodes["test_live"]["traffic"] == {"requests": 0}
    assert "traffic" not in episodes["test_scripted"]
    ends = {name: (e["outcome"], e.get("stop_reason")) for name, e in episodes.items()}
    assert ends["test_refused"] == ("failed", "refusal")
    assert ends["test_allowed"] == ("passed", "refusal")
    assert ends["test_bad"] == ("failed", "tool_call_limit")
    failing = episodes["test_failing"]
    assert failing["outcome"] == "error"
    assert [turn["role"] for turn in turns_of(failing)] == ["user", "assistant"]
    assert turns_of(failing)[1]["tool_calls"][0]["result"] == "$5"
    assert failing["traffic"]["failed"] >= 1
    assert turns_of(episodes["test_good"])[1]["tokens"] == {"input": 100, "output": 20}
    assert count_requests(server, "Go on") == 3
    # Runs of the engine do not count twice.
    both = [turn["content"] for turn in turns_of(episodes["test_both"])]
    assert both == ["one", "first", "two", "second"]
    assert episodes["test_both"]["traffic"]["requests"] == 2
    expect_calls_of_all_ways(episodes["test_all_ways"])
    for n in range(6):
        turns = turns_of(episodes[f"test_at_once[{n}]"])
        assert (turns[0]["content"], len(turns)) == (f"My balance? {n}", 3)
    assert not any(e.get("traffic", {}).get("is_shared") for e in found)


def expect_all_that_a_call_tells(episode):
    user, first, last = turns_of(episode)
    assert (user["role"], user["content"]) == ("user", "My balance?")
    (made,) = first["tool_calls"]
    assert (made["arguments"], made["result"]) == ({"account": "checking"}, "$5")
    assert first["tokens"] == {"input": 100, "output": 20}
    assert last["content"] == "You have $5."
    assert last["finish_reason"] == "stop"
    assert last["requested_model"] == "gpt-5-mini"
    assert last["settings"] == {"temperature": 0}
    assert last["first_byte_ms"] <= last["latency_ms"]
    assert episode["traffic"]["requests"] == 2
    assert episode["trajectory_summary"] == {"steps_count": 2, "tool_calls_count": 1}
    assert episode["model"] == "gpt-5-mini"
    assert last["cost_usd"] == pytest.approx(100 * 0.25e-6 + 20 * 2e-6)
    assert episode["traffic"]["vendor_priced_models"] == ["gpt-5-mini"]  # at the loopback
    assert episode["conditions"]["prices"].startswith("genai-prices ")


def expect_calls_of_all_ways(episode):
    answers = [turn for turn in turns_of(episode) if turn["role"] == "assistant"]
    assert [turn["content"] for turn in answers] == ["first", "second", "third", "third", "first"]
    assert answers[1]["tokens"]  # a stream that did not ask for its usage
    assert answers[4]["response_model"] == "claude-haiku-4-5"


def count_requests(server, prompt):
    return sum(prompt in asked.body["messages"][0]["content"] for asked in server.requests)


BUDGETS = {
    "'max_turns': 4": (4, "max_turns"),
    "'tool_calls': 3": (4, "tool_call_limit"),
    "'token_usage': 250": (3, "token_limit"),
    "'cost_usd': 0.0001": (2, "cost_limit"),
}
RUNS_AWAY = """
@pytest.mark.episode(budgets={{{budget}}})
def test_hidden_{number}(episode):
    try:
        ask('Go {number}')
    except Exception:
        pass
    assert episode.tool_calls

@pytest.mark.episode(budgets={{{budget}}})
def test_told_{number}(episode):
    with episode.turn("Go") as turn:
        turn.reply(ask("Go"))
"""


def test_a_budget_stops_plain_code_while_it_runs_whatever_it_makes_of_the_refusal(suite):
    tests = [RUNS_AWAY.format(number=n, budget=budget) for n, budget in enumerate(BUDGETS)]
    # All calls in a turn of the test are one turn.
    _, found, server = suite(
        {"Go": RUNAWAY}, "".join(tests), "--deselect=test_suite.py::test_told_0"
    )
    episodes = {episode["nodeid"].rpartition("::")[2]: episode for episode in found}
    for number, (requests, stop) in enumerate(BUDGETS.values()):
        hidden, told = (episodes.get(f"test_{name}_{number}") for name in ("hidden", "told"))
        assert count_requests(server, f"Go {number}") == requests
        for episode in (hidden, told or hidden):
            assert (episode["outcome"], episode["stop_reason"]) == ("failed", stop)
            assert episode["traffic"]["refused"] == 1
        assert len(turns_of(hidden)) == requests + 1
        # The result of the last tool is in the refused request.
        calls = [made for turn in turns_of(hidden)[1:] for made in turn["tool_calls"]]
        assert [made["result"] for made in calls] == ["$5"] * requests
    assert episodes["test_told_1"]["budgets"]["tool_calls"]["used"] == 4


CHUNK = 'data: {{"choices": [{{"index": 0, "delta": {{"content": "{}"}}}}]}}\n\n'
PARTS = [CHUNK.format("You have "), CHUNK.format("$1,500")]
ERROR = 'data: {"error": {"message": "overloaded", "code": 529}}\n\n'


def stream(*chunks, drop_after=None):
    return [Step(chunks=chunks, content_type="text/event-stream", drop_after=drop_after)] * 2


def test_a_stream_that_breaks_off_is_no_answer_although_the_agent_catches_it(suite):
    breaks = {
        "dropped": (stream(*PARTS, CHUNK, drop_after=2), "error", "model_error"),
        "overloaded": (stream(*PARTS, ERROR), "error", "model_error"),
        "ended": (stream(*PARTS), "failed", "truncated"),
        "down": ([Step(status=500)], "error", "model_error"),
        "left": (stream(*PARTS, *[CHUNK.format("x")] * 9), "passed", None),
        "whole": (stream(*PARTS, "data: [DONE]\n\n"), "passed", None),
    }
    _, episodes, _ = suite(
        {prompt: script for prompt, (script, *_) in breaks.items()},
        f"""
import requests

def read_openai(prompt):
    client = OpenAI(base_url=URL, api_key="k", max_retries=0)
    messages = [{{"role": "user", "content": prompt}}]
    for chunk in client.chat.completions.create(model="m", messages=messages, stream=True):
        yield chunk.choices[0].delta.content

def read_requests(prompt):
    body = {{"model": "m", "messages": [{{"role": "user", "content": prompt}}], "stream": True}}
    answer = requests.post(URL + "/chat/completions", json=body, stream=True)
    with answer:
        answer.raise_for_status()
        for line in answer.iter_lines():
            if line and line != b"data: [DONE]":
                yield json.loads(line.removeprefix(b"data: "))["choices"][0]["delta"]["content"]

def collect(read, prompt):
    parts = []
    try:
        for part in read(prompt):
            parts.append(part)
            if prompt == "left" and len(parts) == 2:
                break
    except Exception:
        pass
    return "".join(parts) or "Sorry, try again later."

each_way = pytest.mark.parametrize("read", [read_openai, read_requests])
each_break = pytest.mark.parametrize("prompt", {list(breaks)})

@each_way
@each_break
def test_marker(episode, read, prompt):
    assert episode.scenario_id
    assert collect(read, prompt)

@each_way
@each_break
def test_by_hand(episode, read, prompt):
    with episode.turn(prompt) as turn:
        turn.reply(collect(read, prompt))
    with episode.turn("Thanks") as turn:
        turn.reply("Bye", source="scripted")
    assert turn.message == "Thanks"

@each_way
@each_break
async def test_run(aitest_run, read, prompt):
    import asyncio
    result = await aitest_run(lambda asked: collect(read, asked), prompt)
    assert result.final_response
""",
    )
    assert len(episodes) == 36
    for episode in episodes:
        (prompt,) = (one for one in breaks if one in episode["nodeid"])
        _, outcome, stop = breaks[prompt]
        found = episode["outcome"], episode.get("stop_reason", "completed")
        assert found == (outcome, stop or "completed"), (episode["nodeid"], episode)


def test_a_declared_provider_has_the_address_that_the_test_sets(suite):
    with ModelServer([400]) as old:
        tests = f"""
from ci_agent_eval.engine import Agent, Provider

@pytest.mark.parametrize("address", [{old.base_url!r}, URL], ids=["old", "new"])
async def test_greets(aitest_run, monkeypatch, address):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    result = await aitest_run(Agent(Provider("openai-chat:gpt-5-mini")), "Hi", raises=False)
    assert result.outcome
"""
        _, episodes, _ = suite(["Hello"], tests)
    assert [episode["stop_reason"] for episode in episodes] == ["completed", "model_error"]


def test_an_sdk_that_the_test_itself_imports_is_watched(pytester):
    source = """
import pytest

@pytest.mark.parametrize("n", range(3))
async def test_late(episode, n):
    import asyncio, sys

    assert n or "openai" not in sys.modules
    from openai import OpenAI

    client = OpenAI(base_url={url!r}, api_key="k")
    asked = [{{"role": "user", "content": f"Number {{n}}"}}]
    await asyncio.to_thread(client.chat.completions.create, model="m", messages=asked)
"""
    with ModelServer(["Hi"]) as server:
        pytester.makepyfile(source.format(url=server.base_url))
        result = pytester.runpytest_subprocess(
            "--episode-report-dir=out", "--episode-concurrency=3"
        )
    episodes = json.loads((pytester.path / "out/results.json").read_text())["episodes"]
    assert [[turn["content"] for turn in turns_of(one)] for one in episodes] == [
        [f"Number {n}", "Hi"] for n in range(3)
    ], result.stdout.str()
    assert not any("is_shared" in one["traffic"] for one in episodes)


def test_a_frozen_date_changes_no_latency_and_imports_come_before_the_first_episode(pytester):
    pytester.makepyfile(
        """
import datetime, sys, time
import pytest

class FakeDatetime(datetime.datetime):
    pass

@pytest.fixture
def frozen(monkeypatch):
    for name in ("perf_counter", "monotonic", "time"):
        monkeypatch.setattr(time, name, lambda: 5.0)
    monkeypatch.setattr(datetime, "datetime", FakeDatetime)

def answer(prompt):
    assert "ci_agent_eval.engine.adapters.loop" in sys.modules
    time.sleep(0.05)
    return "Hi"

async def test_run(frozen, aitest_run):
    before = set(sys.modules)
    result = await aitest_run(answer, "Hello")
    assert not {name for name in set(sys.modules) - before if name.startswith("ci_agent_eval")}
    assert result.final_response == "Hi"

def test_by_hand(frozen, episode):
    with episode.turn("Hello") as turn:
        turn.reply(answer("Hello"))
    assert turn.message
"""
    )
    result = pytester.runpytest_subprocess("--episode-report-dir=out")
    result.assert_outcomes(passed=2)
    episodes = json.loads((pytester.path / "out/results.json").read_text())["episodes"]
    assert all(turns_of(episode)[-1]["latency_ms"] >= 50 for episode in episodes)


def test_a_suite_without_an_http_client_imports_no_hooks(pytester):
    pytester.makepyfile(
        """
import sys

def test_scripted(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    assert "ci_agent_eval.model_traffic.hooks" not in sys.modules
"""
    )
    result = pytester.runpytest_subprocess("--episode-report-dir=out")
    result.assert_outcomes(passed=1)
    (episode,) = json.loads((pytester.path / "out/results.json").read_text())["episodes"]
    assert episode["traffic"] == {"requests": 0}


def test_the_clients_are_those_of_the_hooks():
    assert set(hooks._libraries._libraries) == CLIENTS


STREAMS = """
KINDS = [{}, {"stream_options": {"include_usage": True}}, {"stream_options": {"include_usage": False}}]
asking = [{"role": "user", "content": "hello"}]


def read(chunks):
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "It is fine."
    return [chunk for chunk in chunks if not chunk.choices]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.episode(budgets={"cost_usd": 1})
def test_stream(episode, kind):
    stream = openai.chat.completions.create(model="gpt-5-mini", messages=asking, stream=True, **kind)
    assert len(read(list(stream))) == (kind == KINDS[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.episode(budgets={"cost_usd": 1})
async def test_stream_async(episode, kind):
    async with AsyncOpenAI(base_url=URL, api_key="k") as client:
        stream = await client.chat.completions.create(
            model="gpt-5-mini", messages=asking, stream=True, **kind
        )
        assert len(read([chunk async for chunk in stream])) == (kind == KINDS[1])
"""


def test_streams_have_their_usage_and_clients_see_what_they_asked_for(suite):
    result, recorded, server = suite({"*": ["It is fine."]}, STREAMS, "--cassette=record")
    result.assert_outcomes(passed=6)
    assert len(server.requests) == 6
    result, replayed, server = suite({}, STREAMS, "--cassette=replay")
    result.assert_outcomes(passed=6)
    assert len(server.requests) == 0
    for episode in (*recorded, *replayed):
        (_, answer) = turns_of(episode)
        assert answer["tokens"] == {"input": 100, "output": 20}
        assert answer["cost_usd"] > 0


WITHOUT_OPTION = """
import openai as library


def asking(prompt):
    messages = [{"role": "user", "content": prompt}]
    return dict(model="gpt-5-mini", messages=messages, stream=True)


def test_unknown_option(episode):
    chunks = list(openai.chat.completions.create(**asking("hello")))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "It is fine."


async def test_other_refusal(episode):
    async with AsyncOpenAI(base_url=URL, api_key="k") as client:
        with pytest.raises(library.BadRequestError, match="scripted 400"):
            await client.chat.completions.create(**asking("long"))
"""


def test_a_provider_that_does_not_know_the_option_is_asked_without_it(suite):
    script = {
        "hello": [Step(status=400, code="unknown field: stream_options"), "It is fine."],
        "long": [Step(status=400, code="too long")],
    }
    result, episodes, server = suite(script, WITHOUT_OPTION)
    result.assert_outcomes(passed=1, failed=1)  # the second ended without an answer
    assert [("stream_options" in one.body) for one in server.requests] == [True, False, True]
    plain, refused = sorted(episodes, key=lambda one: one["outcome"] != "passed")
    assert turns_of(plain)[1]["content"] == "It is fine."
    assert "scripted 400" in refused["reason"]
