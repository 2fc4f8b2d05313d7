"""The model's environment, and cassettes of tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step, call
from tests.processes import run_agent_eval

# The fixture `model_environment`: model calls of a test's own subprocesses.


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
def model_suite(pytester, suite, monkeypatch):
    """Run tests against a scripted model; returns pytest's result, the episodes and the server."""

    def run(script, source, *arguments):
        with ModelServer(script) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            pytester.makepyfile(SUITE + source)
            result = suite.run_in_process("--episode-report-dir=out", *arguments)
        results = json.loads((pytester.path / "out/results.json").read_text())
        return result, results["episodes"], server

    return run


def test_a_subprocess_becomes_the_episode(model_suite):
    result, (episode,), server = model_suite(
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


def test_a_budget_stops_a_subprocess(model_suite):
    result, (episode,), server = model_suite(
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


def test_the_subprocess_of_a_run_belongs_to_the_run(model_suite):
    result, (episode,), server = model_suite(BALANCE, RUN.format(max_turns=5))
    result.assert_outcomes(passed=1)
    prompt, first, last = episode["trajectory"]["turns"]
    assert (prompt["content"], last["content"]) == ("How much?", "You have $5.")
    assert first["tool_calls"][0]["result"] == "$5"
    assert last["tokens"]["output"] == 20
    assert last["cost_usd"] > 0
    assert episode["traffic"]["requests"] == len(server.requests) == 2


def test_a_limit_that_refuses_a_request_of_a_subprocess_is_the_stop(model_suite):
    result, (episode,), server = model_suite(BALANCE[:1] * 20, RUN.format(max_turns=3))
    result.assert_outcomes(failed=1)
    assert (episode["stop_reason"], episode["outcome"]) == ("max_turns", "failed")
    assert len(server.requests) == 3
    assert episode["traffic"]["refused"] == 1


def test_an_episode_without_subprocesses_starts_no_gateway(model_suite):
    result, _, _ = model_suite(
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
def test_processes_that_a_function_starts_are_recorded_and_replayed(model_suite, concurrency):
    source = CHILDREN.replace("MAX_TURNS", "5")
    options = [f"--episode-concurrency={concurrency}"]
    result, recorded, server = model_suite(BALANCE, source, "--cassette=record", *options)
    result.assert_outcomes(passed=4)
    assert len(server.requests) == 8
    result, replayed, server = model_suite([], source, "--cassette=replay", *options)
    result.assert_outcomes(passed=4)
    assert not server.requests
    for episode in (*recorded, *replayed):
        assert episode["traffic"]["requests"] == 2
        prompt, _, answer = episode["trajectory"]["turns"]
        assert (prompt["content"], answer["content"]) == ("How much?", "You have $5.")


def test_processes_that_a_function_starts_are_stopped_by_a_budget(model_suite):
    source = CHILDREN.replace("MAX_TURNS", "3").replace("] * 2", "]")
    result, episodes, server = model_suite(BALANCE[:1] * 20, source, "--episode-concurrency=4")
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


def test_an_agent_whose_requests_are_not_seen_is_a_warning(model_suite, pytester):
    result, episodes, server = model_suite([Step(text="You have $5.")], UNSEEN)
    result.assert_outcomes(passed=2)
    assert len(server.requests) == 1
    assert [one.get("traffic") for one in episodes] == [None, {"requests": 0}]
    told = "no request to a model was seen in 1"
    result.stdout.fnmatch_lines([f"WARNING {told} episode, so that neither*`model_environment`"])
    run_agent_eval("report", "--results", "out", "--report-dir", "report", cwd=pytester.path)
    comment = (pytester.path / "report/comment.md").read_text()
    assert f"⚠️ `` {told} scenario, so that neither budgets nor cassettes work;" in comment


@pytest.mark.parametrize("mode", ["record", "replay", "auto"])
def test_an_agent_whose_requests_are_not_seen_is_an_error_with_cassettes(model_suite, mode):
    result, episodes, _ = model_suite([Step(text="You have $5.")], UNSEEN, f"--cassette={mode}")
    result.assert_outcomes(passed=1, failed=1)
    teller, scripted = sorted(episodes, key=lambda one: one["outcome"] == "passed")
    assert (teller["outcome"], scripted["outcome"]) == ("error", "passed")
    assert "can neither record nor replay it" in teller["reason"]


# `--cassette-tools`: the results of tools are recorded and replayed, too; and rules instead.


SERVERS = Path(__file__).parents[1] / "servers"

SUITE_CASSETTE_TOOLS = """
import itertools, os, sys, time
from datetime import datetime
from ci_agent_eval.engine import Agent, CLIServer, MCPServer, Provider
from pydantic_ai import Agent as Loop, BinaryContent, ModelRetry, ToolReturn
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

def connect(name="gpt-5-mini"):
    return OpenAIChatModel(name, provider=OpenAIProvider(base_url={url!r}, api_key="k"))

def note_call(name):
    with open("calls.txt", "a") as file:
        print(name, file=file)

provider = Provider("openai:gpt-5-mini", base_url={url!r})
banking = MCPServer(command=[sys.executable, {bank!r}])
shell = CLIServer("python", sys.executable)
"""

CLOCK = """
def read_clock() -> datetime:
    "Return the time."
    note_call("clock")
    return datetime.fromtimestamp(time.time_ns() / 1e9)

async def test_clock(aitest_run):
    result = await aitest_run(Loop(connect(), tools=[read_clock]), "What time is it?")
    assert result.final_response.startswith("It is")
"""


TOOLS = """
async def test_pid(aitest_run):
    agent = Agent(provider=provider, mcp_servers=[banking])
    assert (await aitest_run(agent, "Who are you?")).final_response.startswith("It is")

async def test_shell(aitest_run):
    agent = Agent(provider=provider, cli_servers=[shell])
    assert (await aitest_run(agent, "Which process?")).final_response.startswith("It is")

def add(a: int) -> int:
    "Add."
    return a

async def test_add(aitest_run):
    assert (await aitest_run(Loop(connect(), tools=[add]), "Add.")).success

tries = itertools.count()

def try_again() -> str:
    "Fail once."
    if next(tries) % 2 == 0:
        raise ModelRetry(f"once more, {time.time_ns()}")
    return f"done at {time.time_ns()}"

def fail() -> str:
    "Fail."
    raise ToolFailed(f"no luck at {time.time_ns()}")

def show() -> ToolReturn:
    "Return a picture."
    picture = BinaryContent(str(time.time_ns()).encode(), media_type="image/png")
    return ToolReturn({"at": time.time_ns()}, content=["look", picture], metadata={"n": 1})

def list_parts() -> tuple:
    "Return parts."
    return (time.time_ns(), {"set": {os.getpid()}})

async def test_kinds(aitest_run):
    agent = Loop(connect(), tools=[try_again, fail, show, list_parts])
    assert (await aitest_run(agent, "Every kind.")).success

async def ask_expert() -> str:
    "Ask the expert."
    note_call("expert")
    async with connect("gpt-5") as model:
        return (await Loop(model).run("the riddle")).output

async def test_expert(aitest_run):
    result = await aitest_run(Loop(connect(), tools=[ask_expert]), "the question")
    assert result.final_response == "It is 42."

def list_orders() -> tuple:
    "Return orders."
    return ("first", {"open": {7}, "on": datetime(2026, 11, 23)})

def tell() -> str:
    "Return a text."
    return "a text"

def show_text() -> ToolReturn:
    "Return a value and a text beside it."
    return ToolReturn({"a": 1}, content=["look"])

async def test_orders(aitest_run):
    agent = Loop(connect(), tools=[list_orders, tell, show_text])
    assert (await aitest_run(agent, "The same each time.")).success
"""
SHELL = call("python_execute", args="-c 'import os; print(os.getpid())'")
KINDS = ["try_again", "try_again", "fail", "show", "list_parts"]
SCRIPT = {
    "What time": [Step(tool_calls=[call("read_clock")]), Step(text="It is {tool}.")],
    "Who are you": [Step(tool_calls=[call("process_id")]), Step(text="It is {tool}.")],
    "Which process": [Step(tool_calls=[SHELL]), Step(text="It is {tool}.")],
    "Add.": [Step(tool_calls=[call("add", a=1)]), "done"],
    "Every kind.": [*(Step(tool_calls=[call(name)]) for name in KINDS), "done"],
    "riddle": ["42"],
    "question": [Step(tool_calls=[call("ask_expert")]), Step(text="It is {tool}.")],
    "same each": [
        *(
            Step(text="I saw {tool}", tool_calls=[call(name)])
            for name in ("list_orders", "tell", "show_text")
        ),
        "I saw {tool}",
    ],
}


@pytest.fixture
def run(pytester, suite):
    """Run a suite; return pytest's result, the episodes by test name, and requests served."""

    def run(source, *arguments, script=SCRIPT):
        with ModelServer(script) as server:
            head = SUITE_CASSETTE_TOOLS.format(bank=str(SERVERS / "bank.py"), url=server.base_url)
            pytester.makepyfile(test_suite=head + source)
            result = suite.run_in_process("--episode-report-dir=out", *arguments)
            asked = len(server.requests)
        results = json.loads((pytester.path / "out/results.json").read_text())
        episodes = {e["nodeid"].rpartition("::")[2]: e for e in results["episodes"]}
        return result, episodes, asked

    return run


def test_the_results_of_tools_are_replayed_and_the_model_sees_what_it_always_sees(run, pytester):
    _, live, _ = run(TOOLS, "-k", "orders")
    pytester.makeini("[pytest]\ncassette = record\ncassette_tools = true\n")
    result, recorded, _ = run(CLOCK + TOOLS)
    result.assert_outcomes(passed=7)
    result, replayed, asked = run(CLOCK + TOOLS, "--cassette=replay", script=[500])
    result.assert_outcomes(passed=7)
    assert asked == 0
    turns, again, once = (
        {name: list_turns(episode) for name, episode in episodes.items()}
        for episodes in (recorded, replayed, live)
    )
    assert again == turns
    seen = [[turn["content"] for turn in one["test_orders"]] for one in (once, turns)]
    assert seen[0] == seen[1]
    assert seen[0][2] == 'I saw ["first",{"open":[7],"on":"2026-11-23T00:00:00"}]'
    # A tool that asks a model is called, so that its tokens count.
    calls = (pytester.path / "calls.txt").read_text().split()
    assert sorted(calls) == ["clock", "expert", "expert"]

    (cassette,) = (path for path in (pytester.path / "cassettes").iterdir() if "add" in path.name)
    text = cassette.read_text()
    cassette.write_text(text.replace("arguments:\n          a: 1", "arguments:\n          a: 2"))
    assert cassette.read_text() != text
    _, found, _ = run(TOOLS, "--cassette=replay", "-k", "add", script=[500])
    reason = found["test_add"]["reason"]
    assert "changed: the arguments of tool 'add'" in reason
    assert reason.endswith("--- the arguments of tool 'add'\n-a: 2\n+a: 1")


def test_without_it_a_clock_is_a_miss_that_names_the_rule_that_helps(run, pytester):
    run(CLOCK, "--cassette=record")
    _, found, _ = run(CLOCK, "--cassette=replay", "--cassette-tools", script=[500])
    missed = found["test_clock"]
    assert missed["outcome"] == "error"
    assert "no recording of this request, nor of any like it" in missed["reason"]
    result, found, _ = run(CLOCK, "--cassette=replay", script=[500])
    result.assert_outcomes(failed=1)
    missed = found["test_clock"]
    assert missed["outcome"] == "error"
    assert "changed: messages[2].content" in missed["reason"]
    rule = missed["reason"].partition("cassette_replace:\n")[2].strip()
    pytester.makeini(f"[pytest]\ncassette_replace =\n    {rule}\n")
    result, _, asked = run(CLOCK, "--cassette=replay", script=[500])
    result.assert_outcomes(passed=1)
    assert asked == 0


def list_turns(episode):
    """Return the turns without what a replay has to change."""
    turns = episode["trajectory"]["turns"]
    for turn in turns:
        turn.pop("source", None)
        for tool_call in turn.get("tool_calls", []):
            del tool_call["duration_ms"]
            tool_call.pop("id", None)
    return turns


def test_a_wrong_rule_is_a_usage_error(pytester, suite):
    pytester.makeini("[pytest]\ncassette_replace = [0-9\n")
    pytester.makepyfile("def test_a(): pass")
    result = suite.run_in_process("--cassette=replay")
    result.stderr.fnmatch_lines(["*ini setting cassette_replace: '[[]0-9' is not a rule: *"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR
