"""Agents in other processes, whose model calls pass the gateway."""

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
from ci_agent_eval.redaction import Redactor
from tests.integration.engine.rig import run_agent
from tests.model_server import ModelServer
from tests.model_server.script import call

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
