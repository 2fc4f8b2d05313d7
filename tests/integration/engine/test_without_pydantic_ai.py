"""A suite where PydanticAI, MCP and OpenTelemetry are not installed: the extra `traffic`."""

from __future__ import annotations

import json

from ci_agent_eval.errors import build_install_command
from tests.processes import run_python

BLOCKED = ("pydantic_ai", "mcp", "fastmcp", "openai", "opentelemetry", "pydantic_evals")

BLOCK = f"""
import importlib.util, sys


class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, NotInstalled())
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name.partition(".")[0] in {BLOCKED!r} else real(name, package)
)
"""
"""Python code that hides the packages, also from programs that ask whether they are there."""

SUITE = """
import json
import sys

import pytest

from ci_agent_eval import conversation
from ci_agent_eval.engine import Agent, CommandAgent, HTTPAgent, Provider


async def respond(message, history):
    return f"{len(history)} before: {message}"


class Plain:
    label, model = "plain", None

    async def answer(self, work):
        from ci_agent_eval.engine import Reply
        work.set_reply(Reply("from an adapter"))


@pytest.mark.episode(scenario_id="function")
async def test_function(aitest_run):
    first = await aitest_run(respond, "one")
    second = await aitest_run(respond, "two", messages=first.messages)
    assert second.final_response == "2 before: two"


@pytest.mark.episode(scenario_id="command")
async def test_command(aitest_run):
    program = "import sys, json; print(json.dumps({'type': 'text', 'text': sys.stdin.read()}))"
    assert (await aitest_run(CommandAgent([sys.executable, "-c", program]), "hi")).success


@pytest.mark.episode(scenario_id="http", evidence="none")
async def test_http(aitest_run):
    agent = HTTPAgent("http://127.0.0.1:9/chat")
    assert (await aitest_run(agent, "hi", raises=False)).stop_reason == "model_error"


@conversation("A conversation", Plain)
async def test_conversation(agent):
    assert await agent.send("hi") == "from an adapter"


@pytest.mark.episode(scenario_id="declared")
async def test_declared(aitest_run):
    await aitest_run(Agent(Provider("openai:gpt-5-mini")), "hi")
"""

NEEDED = (
    "InputError: a declared Agent needs pydantic_ai, which is not installed; "
    f"run: {build_install_command('engine')}"
)


def test_a_suite_runs_every_agent_but_declared_ones(tmp_path):
    (tmp_path / "not_installed.py").write_text(BLOCK)
    (tmp_path / "test_suite.py").write_text(SUITE)

    done = run_python(
        "-m",
        "pytest",
        "-p",
        "not_installed",
        "-p",
        "no:randomly",
        "--episode-report-dir=out",
        "test_suite.py",
        cwd=tmp_path,
        PYTHONPATH=str(tmp_path),
    )

    results = json.loads((tmp_path / "out/results.json").read_text())
    outcomes = {e["nodeid"].rpartition("::")[2]: e["outcome"] for e in results["episodes"]}
    expected = dict.fromkeys(
        ("test_function", "test_command", "test_http", "test_conversation"), "passed"
    )
    assert outcomes == {**expected, "test_declared": "error"}, done.stdout
    assert NEEDED in done.stdout


def test_the_name_of_pydantic_ai_s_agents_says_what_to_install(tmp_path):
    (tmp_path / "asks.py").write_text(f"{BLOCK}\nfrom ci_agent_eval.engine import LoopAgent\n")

    done = run_python("asks.py", cwd=tmp_path)

    assert done.stderr.splitlines()[-1].endswith(
        "LoopAgent needs pydantic_ai, which is not installed; "
        f"run: {build_install_command('engine')}"
    )
