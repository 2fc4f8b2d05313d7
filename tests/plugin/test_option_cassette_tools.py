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

def note_call():
    with open("calls.txt", "a") as file:
        file.write("called\\n")

provider = Provider("openai:gpt-5-mini", base_url={url!r})
banking = MCPServer(command=[sys.executable, {bank!r}])
shell = CLIServer("python", sys.executable)
"""

CLOCK = """
def read_clock() -> datetime:
    "Return the time."
    note_call()
    return datetime.fromtimestamp(time.time_ns() / 1e9)

async def test_clock(aitest_run):
    result = await aitest_run(Loop(connect(), tools=[read_clock]), "What time is it?")
    assert result.final_response.startswith("It is")
"""
MCP = """
async def test_pid(aitest_run):
    agent = Agent(provider=provider, mcp_servers=[banking])
    assert (await aitest_run(agent, "Who are you?")).final_response.startswith("It is")
"""
CLI = """
async def test_shell(aitest_run):
    agent = Agent(provider=provider, cli_servers=[shell])
    assert (await aitest_run(agent, "Which process?")).final_response.startswith("It is")
"""
CLOCK_SCRIPT = [Step(tool_calls=[call("read_clock")]), Step(text="It is {tool}.")]


@pytest.fixture
def run(pytester, suite):
    """Run a suite against a script; return pytest's result, the episode, and requests served."""

    def run(source, script, *arguments):
        with ModelServer(script) as server:
            head = SUITE.format(bank=str(SERVERS / "bank.py"), url=server.base_url)
            pytester.makepyfile(test_suite=head + source)
            result = suite.run_in_process("--episode-report-dir=out", *arguments)
            asked = len(server.requests)
        results = json.loads((pytester.path / "out/results.json").read_text())
        (episode,) = results["episodes"]
        return result, episode, asked

    return run


def list_turns(episode):
    """Return the turns without what a replay has to change."""
    turns = episode["trajectory"]["turns"]
    for turn in turns:
        turn.pop("source", None)
        for tool_call in turn.get("tool_calls", []):
            del tool_call["duration_ms"]
            tool_call.pop("id", None)
    return turns


@pytest.mark.parametrize(
    ("source", "script"),
    [
        (MCP, [Step(tool_calls=[call("process_id")]), Step(text="It is {tool}.")]),
        (
            CLI,
            [
                Step(
                    tool_calls=[call("python_execute", args="-c 'import os; print(os.getpid())'")]
                ),
                Step(text="It is {tool}."),
            ],
        ),
    ],
)
def test_the_result_of_a_tool_is_replayed(run, source, script):
    result, recorded, _ = run(source, script, "--cassette=record", "--cassette-tools")
    result.assert_outcomes(passed=1)
    result, replayed, asked = run(source, [500], "--cassette=replay", "--cassette-tools")
    result.assert_outcomes(passed=1)
    assert asked == 0
    assert list_turns(replayed) == list_turns(recorded)


def test_the_tool_is_not_called_and_the_ini_setting_does_the_same(run, pytester):
    pytester.makeini("[pytest]\ncassette = record\ncassette_tools = true\n")
    run(CLOCK, CLOCK_SCRIPT)
    result, _, _ = run(CLOCK, [500], "--cassette=replay")
    result.assert_outcomes(passed=1)
    assert (pytester.path / "calls.txt").read_text() == "called\n"


def test_without_it_a_clock_is_a_miss_that_names_the_rule_that_helps(run, pytester):
    run(CLOCK, CLOCK_SCRIPT, "--cassette=record")
    result, missed, _ = run(CLOCK, [500], "--cassette=replay")
    result.assert_outcomes(failed=1)
    assert missed["outcome"] == "error"
    assert "changed: the result of 'read_clock'" in missed["reason"]
    rule = missed["reason"].partition("cassette_replace:\n")[2].strip()
    pytester.makeini(f"[pytest]\ncassette_replace =\n    {rule}\n")
    result, _, asked = run(CLOCK, [500], "--cassette=replay")
    result.assert_outcomes(passed=1)
    assert asked == 0


def test_a_call_that_is_not_recorded_is_a_miss(run):
    run(CLOCK, CLOCK_SCRIPT, "--cassette=record")
    _, missed, _ = run(CLOCK, [500], "--cassette=replay", "--cassette-tools")
    assert missed["outcome"] == "error"
    assert "no recording of this request, nor of any like it" in missed["reason"]


def test_a_call_with_other_arguments_shows_them(run, pytester):
    source = """
def add(a: int) -> int:
    "Add."
    return a

async def test_add(aitest_run):
    assert (await aitest_run(Loop(connect(), tools=[add]), "Add.")).success
"""
    run(
        source,
        [Step(tool_calls=[call("add", a=1)]), "done"],
        "--cassette=record",
        "--cassette-tools",
    )
    (cassette,) = (pytester.path / "cassettes").iterdir()
    text = cassette.read_text()
    cassette.write_text(text.replace("arguments:\n          a: 1", "arguments:\n          a: 2"))
    assert cassette.read_text() != text
    _, missed, _ = run(source, [500], "--cassette=replay", "--cassette-tools")
    assert "changed: the arguments of tool 'add'" in missed["reason"]
    assert missed["reason"].endswith("--- the arguments of tool 'add'\n-a: 2\n+a: 1")


KINDS = """
calls = itertools.count()

def try_again() -> str:
    "Fail once."
    if next(calls) % 2 == 0:
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
    assert (await aitest_run(agent, "Go.")).success
"""


def test_every_kind_of_outcome_is_replayed(run):
    names = ["try_again", "try_again", "fail", "show", "list_parts"]
    script = [Step(tool_calls=[call(name)]) for name in names] + [Step(text="done")]
    result, recorded, _ = run(KINDS, script, "--cassette=record", "--cassette-tools")
    result.assert_outcomes(passed=1)
    result, replayed, _ = run(KINDS, [500], "--cassette=replay", "--cassette-tools")
    result.assert_outcomes(passed=1)
    assert list_turns(replayed) == list_turns(recorded)


SUB_AGENT = """
async def ask_expert() -> str:
    "Ask the expert."
    note_call()
    async with connect("gpt-5") as model:
        return (await Loop(model).run("the riddle")).output

async def test_expert(aitest_run):
    result = await aitest_run(Loop(connect(), tools=[ask_expert]), "the question")
    assert result.final_response == "It is 42."
"""


def test_a_tool_that_asks_a_model_is_called_so_that_its_tokens_count(run, pytester):
    script = {
        "riddle": [Step(text="42")],
        "question": [Step(tool_calls=[call("ask_expert")]), Step(text="It is {tool}.")],
    }
    result, recorded, _ = run(SUB_AGENT, script, "--cassette=record", "--cassette-tools")
    result.assert_outcomes(passed=1)
    result, replayed, asked = run(SUB_AGENT, [500], "--cassette=replay", "--cassette-tools")
    result.assert_outcomes(passed=1)
    assert asked == 0
    assert list_turns(replayed) == list_turns(recorded)
    assert (pytester.path / "calls.txt").read_text() == "called\n" * 2


def test_a_wrong_rule_is_a_usage_error(pytester, suite):
    pytester.makeini("[pytest]\ncassette_replace = [0-9\n")
    pytester.makepyfile("def test_a(): pass")
    result = suite.run_in_process("--cassette=replay")
    result.stderr.fnmatch_lines(["*ini setting cassette_replace: '[[]0-9' is no rule: *"])
    assert result.ret == pytest.ExitCode.USAGE_ERROR


SAME_EACH_TIME = """
def list_orders() -> tuple:
    "Return orders."
    return ("first", {"open": {7}, "on": datetime(2026, 11, 23)})

def tell() -> str:
    "Return a text."
    return "a text"

def show() -> ToolReturn:
    "Return a value and a text beside it."
    return ToolReturn({"a": 1}, content=["look"])

async def test_orders(aitest_run):
    agent = Loop(connect(), tools=[list_orders, tell, show])
    assert (await aitest_run(agent, "Go.")).success
"""


def test_the_model_sees_the_same_results_as_without_a_cassette(run):
    names = ["list_orders", "tell", "show"]
    script = [Step(text="I saw {tool}", tool_calls=[call(name)]) for name in names]
    seen = []
    for arguments in [(), ("--cassette=record", "--cassette-tools")]:
        result, episode, _ = run(SAME_EACH_TIME, [*script, "I saw {tool}"], *arguments)
        result.assert_outcomes(passed=1)
        seen.append([turn["content"] for turn in episode["trajectory"]["turns"]])
    assert seen[0] == seen[1]
    assert seen[0][2] == 'I saw ["first",{"open":[7],"on":"2026-11-23T00:00:00"}]'
