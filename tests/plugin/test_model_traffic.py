"""Plain code that calls a model with an SDK: its calls become the episode, with no call of ours."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ci_agent_eval.model_traffic import hooks
from ci_agent_eval.pytest_plugin.episodes.traffic import CLIENTS
from tests.model_server import ModelServer
from tests.model_server.script import Step, call

PAGE = Path(__file__).parents[2] / "docs/traffic.md"

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
            pytester.makepyfile(HEAD.format(url=server.base_url) + source)
            result = suite.run_in_process("--episode-report-dir=out", *arguments)
        results = json.loads((pytester.path / "out/results.json").read_text())
        return result, results["episodes"], server

    return run


def turns_of(episode):
    return episode["trajectory"]["turns"]


def test_the_code_of_the_page_runs(suite, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with ModelServer([Step(text="Hello!")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        result, (episode,), _ = suite([], code)
    result.assert_outcomes(passed=1)
    assert turns_of(episode)[0]["content"] == "Say hello"


def test_plain_code_without_a_turn_becomes_the_episode(suite):
    result, (episode,), server = suite(
        BALANCE,
        """
def test_balance(episode):
    assert ask("My balance?") == "You have $5."
    assert episode.tool_calls[0].name == "balance"
""",
    )
    result.assert_outcomes(passed=1)
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
    assert episode["traffic"]["requests"] == len(server.requests) == 2
    assert episode["trajectory_summary"] == {"steps_count": 2, "tool_calls_count": 1}
    assert episode["model"] == "gpt-5-mini"
    assert last["cost_usd"] == pytest.approx(100 * 0.25e-6 + 20 * 2e-6)
    assert episode["traffic"]["vendor_priced_models"] == ["gpt-5-mini"]  # at the loopback
    assert episode["conditions"]["prices"].startswith("genai-prices ")


def test_an_explicit_reply_is_one_turn_and_the_traffic_adds_the_rest(suite):
    result, (episode,), _ = suite(
        BALANCE,
        """
def test_balance(episode):
    with episode.turn("My balance?") as turn:
        turn.reply(ask("Question: My balance?").upper())
    assert [turn.role for turn in episode.turns] == ["user", "assistant"]
""",
    )
    result.assert_outcomes(passed=1)
    user, reply = turns_of(episode)
    assert user["content"] == "My balance?"
    assert reply["content"] == "YOU HAVE $5."
    assert reply["tokens"] == {"input": 200, "output": 40}
    assert [made["result"] for made in reply["tool_calls"]] == ["$5"]
    assert reply["response_model"] == "gpt-5-mini"


def test_explicit_tokens_and_tool_calls_count_once(suite):
    result, (episode,), _ = suite(
        BALANCE,
        """
def test_balance(episode):
    with episode.turn("My balance?") as turn:
        answer = ask("My balance?")
        turn.tool_call("lookup", result=5)
        turn.reply(answer, tokens={"input": 7, "output": 1}, cost_usd=0.5)
    assert answer
""",
    )
    result.assert_outcomes(passed=1)
    _, reply = turns_of(episode)
    assert (reply["tokens"], reply["cost_usd"]) == ({"input": 7, "output": 1}, 0.5)
    assert [made["name"] for made in reply["tool_calls"]] == ["lookup"]


def test_a_turn_without_a_reply_has_a_turn_for_each_answer_and_calls_around_it_are_turns_too(suite):
    result, (episode,), _ = suite(
        {"one": ["first"], "two": ["second"], "three": ["third"]},
        """
def test_mix(episode):
    ask("one")
    with episode.turn("Number two"):
        ask("two")
    assert ask("three") == "third"
""",
    )
    result.assert_outcomes(passed=1)
    assert [turn["content"] for turn in turns_of(episode)] == [
        "one", "first", "Number two", "second", "three", "third",
    ]  # fmt: skip


HIDING = "\n    except Exception:\n        pass"


@pytest.mark.parametrize(
    ("budget", "requests", "stop", "ending"),
    [
        ("'max_turns': 4", 4, "max_turns", ""),
        ("'max_turns': 4", 4, "max_turns", HIDING),
        ("'tool_calls': 3", 4, "tool_call_limit", HIDING),
        ("'token_usage': 250", 3, "token_limit", HIDING),
        ("'cost_usd': 0.0001", 2, "cost_limit", HIDING),
    ],
)
def test_a_budget_stops_plain_code_while_it_runs_whatever_it_makes_of_the_refusal(
    suite, budget, requests, stop, ending
):
    body = "ask('Go')" if not ending else f"try:\n        ask('Go'){ending}"
    result, (episode,), server = suite(
        RUNAWAY,
        f"""
@pytest.mark.episode(budgets={{{budget}}})
def test_runaway(episode):
    {body}
    assert episode.tool_calls
""",
    )
    result.assert_outcomes(failed=1)
    assert len(server.requests) == requests
    assert (episode["outcome"], episode["stop_reason"]) == ("failed", stop)
    assert episode["traffic"]["refused"] == 1
    assert len(turns_of(episode)) == requests + 1
    # The result of the last tool is in the refused request.
    assert all(
        made["result"] == "$5" for turn in turns_of(episode)[1:] for made in turn["tool_calls"]
    )


def test_a_budget_stops_a_runaway_inside_a_turn(suite):
    result, (episode,), server = suite(
        RUNAWAY,
        """
@pytest.mark.episode(budgets={"tool_calls": 3})
def test_runaway(episode):
    with episode.turn("Go") as turn:
        turn.reply(ask("Go"))
""",
    )
    result.assert_outcomes(failed=1)
    assert len(server.requests) == 4
    assert (episode["outcome"], episode["stop_reason"]) == ("failed", "tool_call_limit")
    assert episode["budgets"]["tool_calls"]["used"] == 4


def test_async_streamed_and_threaded_calls_are_seen(suite):
    result, (episode,), _ = suite(
        {"async": ["a"], "stream": ["b c"], "thread": ["d"], "claude": ["e"]},
        """
import asyncio, threading


async def test_all(episode):
    async with AsyncOpenAI(base_url=URL, api_key="k") as client:
        asked = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "async"}]}
        await client.chat.completions.create(**asked)
        asked["messages"] = [{"role": "user", "content": "stream"}]
        async for chunk in await client.chat.completions.create(**asked, stream=True):
            pass
    await asyncio.to_thread(ask, "thread")
    thread = threading.Thread(target=ask, args=("thread",))
    thread.start()
    await asyncio.to_thread(thread.join)
    anthropic.messages.create(
        model="claude-haiku-4-5", max_tokens=10, messages=[{"role": "user", "content": "claude"}]
    )
    assert len(episode.turns) == 10
""",
    )
    result.assert_outcomes(passed=1)
    answers = [turn for turn in turns_of(episode) if turn["role"] == "assistant"]
    assert [turn["content"] for turn in answers] == ["a", "b c", "d", "d", "e"]
    assert "tokens" not in answers[1]  # a stream that did not ask for its usage
    assert answers[4]["response_model"] == "claude-haiku-4-5"
    assert "is_shared" not in episode["traffic"]


def test_concurrent_episodes_are_apart(suite):
    result, episodes, server = suite(
        BALANCE,
        """
@pytest.mark.parametrize("n", range(6))
async def test_balance(episode, n):
    import asyncio

    answer = await asyncio.to_thread(ask, f"Balance {n}?")
    assert answer == "You have $5."
""",
        "--episode-concurrency=5",
    )
    result.assert_outcomes(passed=6)
    assert len(server.requests) == 12
    assert sorted(turns_of(episode)[0]["content"] for episode in episodes) == [
        f"Balance {n}?" for n in range(6)
    ]
    assert [len(turns_of(episode)) for episode in episodes] == [3] * 6
    assert not any(episode["traffic"].get("is_shared") for episode in episodes)


def test_a_conversation_of_plain_code_is_recorded_and_stopped(suite):
    result, (good, bad), server = suite(
        {"Hello": ["Hi"], "More": RUNAWAY},
        """
from ci_agent_eval import conversation

@conversation("hello", lambda: ask)
def test_good(agent):
    assert agent.send("Hello").content == "Hi"

@pytest.mark.episode(budgets={"tool_calls": 2})
@conversation("runaway", lambda: ask)
def test_bad(agent):
    agent.send("More")
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    assert turns_of(good)[1]["tokens"] == {"input": 100, "output": 20}
    assert bad["stop_reason"] == "tool_call_limit"
    assert len(server.requests) == 1 + 3


def test_an_answer_that_the_provider_filtered_fails_the_episode(suite):
    result, (allowed, episode), _ = suite(
        [Step(text="I will not.", finish_reason="content_filter")],
        """
def test_refused(episode):
    assert ask("Do it")

@pytest.mark.episode(allowed_stops="refusal")
def test_allowed(episode):
    assert ask("Do it")
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    assert (episode["outcome"], episode["stop_reason"]) == ("failed", "refusal")
    assert (allowed["outcome"], allowed["stop_reason"]) == ("passed", "refusal")


def test_a_provider_that_fails_is_an_infrastructure_error_with_a_complete_record(suite):
    result, (episode,), _ = suite(
        [Step(tool_calls=[call("balance", account="checking")]), *[Step(status=500)] * 9],
        """
def test_failing(episode):
    ask("Go")
""",
    )
    result.assert_outcomes(failed=1)
    assert episode["outcome"] == "error"
    assert [turn["role"] for turn in turns_of(episode)] == ["user", "assistant"]
    assert turns_of(episode)[1]["tool_calls"][0]["result"] == "$5"
    assert episode["traffic"]["failed"] >= 1


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


def test_an_episode_without_model_traffic_says_so(suite):
    result, (live, scripted), _ = suite(
        [],
        """
def test_live(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    assert [turn.content for turn in episode.turns] == ["Hello", "Hi"]

def test_scripted(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi", source="scripted")
    assert episode.turns[-1].source == "scripted"
""",
    )
    result.assert_outcomes(passed=2)
    assert live["traffic"] == {"requests": 0}
    assert "traffic" not in scripted


def test_runs_of_the_engine_and_its_judges_do_not_count_twice(suite):
    result, (episode,), server = suite(
        {"Plain": ["a"], "Declared": ["b"]},
        """
from ci_agent_eval.engine import Agent, Provider

async def test_both(aitest_run, episode):
    import asyncio

    await asyncio.to_thread(ask, "Plain")
    result = await aitest_run(Agent(Provider("openai:gpt-5-mini", base_url=URL)), "Declared")
    assert result.final_response == "b"
""",
    )
    result.assert_outcomes(passed=1)
    assert [turn["content"] for turn in turns_of(episode)] == ["Plain", "a", "Declared", "b"]
    assert episode["traffic"]["requests"] == 1
    assert len(server.requests) == 2


def test_a_declared_provider_has_the_address_that_the_test_sets(suite):
    _, episodes, _ = suite(
        ["Hello"],
        """
from ci_agent_eval.engine import Agent, Provider

@pytest.mark.parametrize("address", ["http://127.0.0.1:9/v1", URL], ids=["old", "new"])
async def test_greets(aitest_run, monkeypatch, address):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    result = await aitest_run(Agent(Provider("openai-chat:gpt-5-mini")), "Hi", raises=False)
    assert result.outcome
""",
    )
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
