"""The fixture `model_environment`: model calls of a test's own subprocesses."""

from __future__ import annotations

import json

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step, call
from tests.processes import run_agent_eval

SUITE = """
import os
import subprocess
import sys

import pytest

AGENT = '''
import json, os, sys, urllib.request
messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    body = json.dumps({"model": "gpt-5-mini", "messages": messages}).encode()
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    message = json.load(urllib.request.urlopen(url, body))["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for one in message["tool_calls"]:
        messages.append({"role": "tool", "tool_call_id": one["id"], "content": "$5"})
print(message["content"])
'''


def ask(prompt, variables):
    environ = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", AGENT, prompt], env=environ, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()
"""
BALANCE = [Step(tool_calls=[call("balance", account="checking")]), Step(text="You have {tool}.")]


@pytest.fixture
def suite(pytester, suite, monkeypatch):
    """Run tests against a scripted model; returns pytest's result, the episodes and the server."""

    def run(script, source, *arguments):
        with ModelServer(script) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            pytester.makepyfile(SUITE + source)
            result = suite.run_in_process("--episode-report-dir=out", *arguments)
        results = json.loads((pytester.path / "out/results.json").read_text())
        return result, results["episodes"], server

    return run


def test_a_subprocess_becomes_the_episode(suite):
    result, (episode,), server = suite(
        BALANCE,
        """
def test_balance(model_environment):
    assert ask("How much?", model_environment) == "You have $5."
""",
    )
    result.assert_outcomes(passed=1)
    prompt, first, last = episode["trajectory"]["turns"]
    assert (prompt["role"], prompt["content"]) == ("user", "How much?")
    assert first["tool_calls"][0]["result"] == "$5"
    assert (last["content"], last["tokens"]["output"]) == ("You have $5.", 20)
    assert episode["traffic"]["requests"] == len(server.requests) == 2


def test_a_budget_stops_a_subprocess(suite):
    result, (episode,), server = suite(
        BALANCE[:1] * 20,
        """
@pytest.mark.episode(budgets={"max_turns": 3})
def test_balance(episode, model_environment):
    ask("How much?", model_environment)
""",
    )
    result.assert_outcomes(failed=1)
    assert len(server.requests) == 3
    assert episode["traffic"]["refused"] == 1


RUN = """
import asyncio


async def test_balance(aitest_run, model_environment):
    async def teller(message):
        return await asyncio.to_thread(ask, message, model_environment)

    result = await aitest_run(teller, "How much?", max_turns={max_turns})
    print(result.stop_reason, sorted(result.tool_names_called), result.token_usage, result.cost_usd)
    assert result.success
"""


def test_the_subprocess_of_a_run_belongs_to_the_run(suite):
    result, (episode,), server = suite(BALANCE, RUN.format(max_turns=5))
    result.assert_outcomes(passed=1)
    prompt, first, last = episode["trajectory"]["turns"]
    assert (prompt["content"], last["content"]) == ("How much?", "You have $5.")
    assert first["tool_calls"][0]["result"] == "$5"
    assert last["tokens"]["output"] == 20
    assert last["cost_usd"] > 0
    assert episode["traffic"]["requests"] == len(server.requests) == 2


def test_a_limit_that_refuses_a_request_of_a_subprocess_is_the_stop(suite):
    result, (episode,), server = suite(BALANCE[:1] * 20, RUN.format(max_turns=3))
    result.assert_outcomes(failed=1)
    assert (episode["stop_reason"], episode["outcome"]) == ("max_turns", "failed")
    assert len(server.requests) == 3
    assert episode["traffic"]["refused"] == 1


def test_an_episode_without_subprocesses_starts_no_gateway(suite):
    result, _, _ = suite(
        [],
        """
import threading

pytestmark = pytest.mark.episode(evidence="none")


def test_nothing(episode):
    assert "model-gateway" not in [thread.name for thread in threading.enumerate()]


def test_with_one(model_environment):
    assert "model-gateway" in [thread.name for thread in threading.enumerate()]
""",
    )
    result.assert_outcomes(passed=2)


CHILDREN = """
import asyncio

CHILD = [sys.executable, "-c", AGENT]


async def start(message):
    child = await asyncio.create_subprocess_exec(*CHILD, message, stdout=subprocess.PIPE)
    return (await child.communicate())[0].decode().strip()


def run(message):
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*CHILD, message], env=environ, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("agent", [start, run] * 2)
async def test_balance(aitest_run, agent):
    result = await aitest_run(agent, "How much?", max_turns=MAX_TURNS)
    assert result.final_response == "You have $5."
    assert result.tool_names_called == {"balance"}
    assert os.environ.get("OPENAI_BASE_URL", "").count("/") == 3
"""


@pytest.mark.parametrize("concurrency", [1, 4])
def test_processes_that_a_function_starts_are_recorded_and_replayed(suite, concurrency):
    source = CHILDREN.replace("MAX_TURNS", "5")
    options = [f"--episode-concurrency={concurrency}"]
    result, recorded, server = suite(BALANCE, source, "--cassette=record", *options)
    result.assert_outcomes(passed=4)
    assert len(server.requests) == 8
    result, replayed, server = suite([], source, "--cassette=replay", *options)
    result.assert_outcomes(passed=4)
    assert not server.requests
    for episode in (*recorded, *replayed):
        assert episode["traffic"]["requests"] == 2
        prompt, _, answer = episode["trajectory"]["turns"]
        assert (prompt["content"], answer["content"]) == ("How much?", "You have $5.")


def test_processes_that_a_function_starts_are_stopped_by_a_budget(suite):
    source = CHILDREN.replace("MAX_TURNS", "3").replace("] * 2", "]")
    result, episodes, server = suite(BALANCE[:1] * 20, source, "--episode-concurrency=4")
    result.assert_outcomes(failed=2)
    assert len(server.requests) == 6
    assert {episode["stop_reason"] for episode in episodes} == {"max_turns"}


UNSEEN = """
import asyncio

from ci_agent_eval import Reply


import urllib.request


async def teller(message):
    body = b'{"model": "gpt-5-mini", "messages": [{"role": "user", "content": "How much?"}]}'
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    said = await asyncio.to_thread(lambda: urllib.request.urlopen(url, body).read())
    return "You have $5." if b"$5" in said else ""


async def scripted(message):
    return Reply("You have $5.", source="scripted")


@pytest.mark.parametrize("agent", [teller, scripted])
async def test_balance(aitest_run, agent):
    assert (await aitest_run(agent, "How much?")).success
"""


def test_an_agent_whose_requests_are_not_seen_is_a_warning(suite, pytester):
    result, episodes, server = suite([Step(text="You have $5.")], UNSEEN)
    result.assert_outcomes(passed=2)
    assert len(server.requests) == 1
    assert [one.get("traffic") for one in episodes] == [None, {"requests": 0}]
    told = "no request to a model was seen in 1"
    result.stdout.fnmatch_lines([f"WARNING {told} episode, so that neither*`model_environment`"])
    run_agent_eval("report", "--results", "out", "--report-dir", "report", cwd=pytester.path)
    comment = (pytester.path / "report/comment.md").read_text()
    assert f"⚠️ `` {told} scenario, so that neither budgets nor cassettes work;" in comment


@pytest.mark.parametrize("mode", ["record", "replay", "auto"])
def test_an_agent_whose_requests_are_not_seen_is_an_error_with_cassettes(suite, mode):
    result, episodes, _ = suite([Step(text="You have $5.")], UNSEEN, f"--cassette={mode}")
    result.assert_outcomes(passed=1, failed=1)
    teller, scripted = sorted(episodes, key=lambda one: one["outcome"] == "passed")
    assert (teller["outcome"], scripted["outcome"]) == ("error", "passed")
    assert "can neither record nor replay it" in teller["reason"]
