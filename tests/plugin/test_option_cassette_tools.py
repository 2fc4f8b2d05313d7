"""`--cassette-tools`: the results of tools are recorded and replayed, too; and rules instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step, call

SERVERS = Path(__file__).parents[1] / "servers"

SUITE = """
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
            head = SUITE.format(bank=str(SERVERS / "bank.py"), url=server.base_url)
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
