"""Agents behind the gateway, and the engine without PydanticAI."""

from __future__ import annotations

import json
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ci_agent_eval.engine.adapters.command import CommandAgent
from ci_agent_eval.engine.adapters.http import GATEWAY_HEADER, HTTPAgent
from ci_agent_eval.engine.cassette import CassetteStore
from ci_agent_eval.errors import build_install_command
from ci_agent_eval.redaction import Redactor
from tests.integration.engine.rig import run_agent
from tests.model_server import ModelServer
from tests.model_server.script import call
from tests.processes import run_python

# Agents in other processes, whose model calls pass the gateway.


SCRIPT = [{"tool_calls": [call("balance", account="checking")]}, "You have {tool}"]

AGENT = """
import json, os, sys, urllib.request
messages = [{"role": "user", "content": sys.stdin.read()}]
while True:
    body = json.dumps({"model": "gpt-5-mini", "messages": messages}).encode()
    headers = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        message = json.load(answer)["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for one in message["tool_calls"]:
        messages.append({"role": "tool", "tool_call_id": one["id"], "content": "$1,500.00"})
"""
TEXT = AGENT + "print(message['content'])\nprint('Good bye.')\n"
LINES = AGENT + "print(json.dumps({'type': 'text', 'text': message['content']}))\n"


@pytest.fixture
def server():
    with ModelServer(SCRIPT) as server:
        yield server


def program(code, server, **options):
    env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test"}
    return CommandAgent([sys.executable, "-c", code], env=env, **options)


@pytest.mark.parametrize(
    ("code", "stdout", "text"),
    [(LINES, "json", "You have $1,500.00"), (TEXT, "text", "You have $1,500.00\nGood bye.")],
)
def test_a_program_has_turns_tools_with_results_and_tokens(server, code, stdout, text):
    result = run_agent(program(code, server, stdout=stdout))
    assert (result.stop_reason, result.final_response) == ("completed", text)
    assert server.requests[0].headers["authorization"] == "Bearer sk-test"
    assert [turn.role for turn in result.turns] == ["user", "assistant", "assistant"]
    (call,) = result.turns[1].tool_calls
    assert (call.name, call.arguments) == ("balance", {"account": "checking"})
    assert call.result == "$1,500.00"
    assert [turn.tokens.total for turn in result.turns[1:]] == [120, 120]
    assert result.traffic.requests == 2
    assert result.model == "gpt-5-mini"


def test_a_program_is_recorded_and_replayed(server, tmp_path):
    def run(mode):
        store = CassetteStore(mode, Redactor())
        with store.episode("balance", tmp_path, "balance") as session:
            return run_agent(program(LINES, server), cassette_session=session)

    recorded, replayed = run("record"), run("replay")
    assert len(server.requests) == 2
    assert (recorded.cassette.live, replayed.cassette.hits) == (2, 2)
    assert replayed.final_response == recorded.final_response == "You have $1,500.00"
    assert [turn.tool_calls for turn in replayed.turns] == [
        turn.tool_calls for turn in recorded.turns
    ]
    assert [turn.tokens for turn in replayed.turns] == [turn.tokens for turn in recorded.turns]
    (cassette,) = tmp_path.rglob("balance.yaml")
    assert "sk-test" not in cassette.read_text("utf-8")


class Endpoint(BaseHTTPRequestHandler):
    """An agent behind HTTP that asks the model at the gateway of each request."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        url = self.headers.get(GATEWAY_HEADER)
        text = "no gateway" if url is None else self.ask(url, asked["message"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"text": text}).encode())

    def ask(self, url, prompt):
        messages = [{"role": "user", "content": prompt}]
        body = json.dumps({"model": "gpt-5-mini", "messages": messages}).encode()
        request = urllib.request.Request(f"{url}/openai/v1/chat/completions", body)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint():
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as endpoint:
        thread = threading.Thread(target=endpoint.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{endpoint.server_port}/chat"
        endpoint.shutdown()
        thread.join()


def test_an_endpoint_on_the_loopback_gets_the_gateway_in_a_header(endpoint):
    with ModelServer(["I heard {prompt}"]) as server:
        result = run_agent(HTTPAgent(endpoint, environ={"OPENAI_BASE_URL": server.base_url}))
    assert result.final_response == "I heard my balance?"
    assert (result.traffic.requests, result.turns[-1].tokens.total) == (1, 120)


# A suite where PydanticAI, MCP and OpenTelemetry are not installed: the extra `traffic`.


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
