"""A secret that only a test's declaration holds is in no file of ours, and in no output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step, call
from tests.processes import run_agent_eval

BANK = Path(__file__).parents[1] / "servers/bank.py"

IN_ENV = "q7Rk-env-Wp3vN9sLz2XyB8tHfJ4dQmC6uGa"
IN_HEADER = "Tz5m-header-Ke8cV1nRq7PwD3yLsX9bHjF"
IN_BEARER = "Vd2x-bearer-Hs6jM4tBg9ZkQ8rNpY1wCfL"
IN_ARGS = "Jm4w-args-Xc7kT2qPz5VnR9sGhB3yLdF8e"
OF_MODEL = "Bn8f-model-Yq3zW6tKr1XcH5vLpJ9mSdG2"
IN_PROMPT = "ghp_" + "Lw7rQ2kXz9Tb4Nv6Hc8Jm3Ys5Pd1Fg0KaE"
SHORT = "Xy7-pin-Q4z"
SECRETS = (IN_ENV, IN_HEADER, IN_BEARER, IN_ARGS, OF_MODEL, IN_PROMPT, SHORT)

SUITE = f"""
import logging, sys
import pytest
from ci_agent_eval.engine import Agent, MCPServer, Provider

ENV = {{"BANK_API_KEY": {IN_ENV!r}, "BANK_PASSWORD": {SHORT!r}}}
bank = MCPServer(command=[sys.executable, {str(BANK)!r}], env=ENV, name="bank")
web = MCPServer(
    command=[sys.executable, {str(BANK)!r}, "--http", "{{port}}"],
    transport="streamable-http",
    url="http://127.0.0.1:{{port}}/mcp",
    headers={{"X-Desk": {IN_HEADER!r}, "Authorization": "Bearer {IN_BEARER}"}},
)
dying = MCPServer(
    command=[sys.executable, "-c", "import os, sys; sys.exit(os.environ['BANK_API_KEY'])"],
    args=["--api-key", {IN_ARGS!r}],
    env=ENV,
)
provider = Provider("openai:gpt-5-mini", base_url="THE-URL", api_key_env="DESK")


def agent(*servers):
    return Agent(provider=provider, mcp_servers=servers, name="clerk")


@pytest.mark.episode(scenario_id="of_env")
async def test_of_env(aitest_run, record_property):
    result = await aitest_run(agent(bank), "of env: my key is {IN_PROMPT}")
    record_property("answer", result.final_response)
    assert {IN_ENV!r} in result.final_response and {SHORT!r} in result.final_response


@pytest.mark.episode(scenario_id="of_header")
async def test_of_header(aitest_run, episode):
    result = await aitest_run(agent(web), "of header")
    episode.check("knows " + {IN_HEADER!r}, {IN_HEADER!r} in result.final_response)
    episode.check("knows the bearer", {IN_BEARER!r} in result.final_response)


@pytest.mark.episode(scenario_id="shown")
async def test_shown(aitest_run):
    await aitest_run(agent(web), "of header")
    result = await aitest_run(agent(bank), "of env, to be shown")
    print("printed", result.final_response)
    logging.warning("logged %s", result.final_response)
    texts = [result.final_response, {IN_HEADER!r}, {IN_BEARER!r}]
    assert texts == ["nothing"], result


@pytest.mark.episode(scenario_id="raised")
async def test_raised(aitest_run):
    result = await aitest_run(agent(bank), "of env, to be raised")
    try:
        raise ValueError(result.final_response)
    except ValueError as error:
        raise ConnectionError({SHORT!r} + " was refused") from error


@pytest.mark.episode(scenario_id="of_model")
async def test_of_model(aitest_run):
    result = await aitest_run(agent(), "of model")
    assert result.final_response == "nothing"


@pytest.mark.episode(scenario_id="dead")
async def test_dead(aitest_run):
    await aitest_run(agent(dying), "hello")


@pytest.fixture
def teardown(aitest_run):
    yield
    print("at the end: {IN_ENV}")
    raise RuntimeError({IN_ENV!r})


@pytest.mark.episode(scenario_id="torn")
async def test_torn(aitest_run, teardown):
    assert await aitest_run(agent(bank), "of env, then teardown")
"""

OF_ENV = [Step(tool_calls=[call("environment")]), Step(text="It holds {tool}")]
SCRIPT = {
    "of env": OF_ENV,
    "of header": [Step(tool_calls=[call("headers")]), Step(text="They are {tool}")],
    "of model": [f"my key is {OF_MODEL}"],
}


@pytest.fixture
def ran(tmp_path):
    """Run the suite as a person does; returns the process, and the requests to the model."""
    options = ["-n2", "--cassette=record", "--cassette-dir=cassettes", "-l", "-rA", "-vv"]
    (tmp_path / "pytest.ini").write_text("[pytest]\njunit_logging = all\n")
    with ModelServer(SCRIPT) as server:
        (tmp_path / "test_suite.py").write_text(SUITE.replace("THE-URL", server.base_url))
        done = run_agent_eval("run", ".", "--", *options, cwd=tmp_path, DESK=OF_MODEL)
    assert done.returncode == 1, done.stdout + done.stderr
    return done, server.requests, tmp_path


def texts_of(done, folder):
    files = [
        path
        for place in ("agent-eval-report", "cassettes")
        for path in (folder / place).rglob("*")
        if path.is_file()
    ]
    assert {file.suffix for file in files} >= {".yaml", ".json", ".jsonl", ".xml", ".md"}
    texts = {str(file.relative_to(folder)): file.read_text() for file in files}
    names = "\n".join(texts)
    return {"stdout": done.stdout, "stderr": done.stderr, "names": names, **texts}


def test_no_secret_of_a_declaration_is_written_or_shown(ran):
    done, requests, folder = ran
    asked = "".join(str(request.body) for request in requests)
    for secret in (IN_ENV, IN_HEADER, IN_BEARER, IN_PROMPT, SHORT):
        assert secret in asked, "the model itself is told, or there is nothing to prove"
    texts = texts_of(done, folder)
    pieces = [piece for secret in SECRETS for piece in (secret, secret[:9], secret[-9:])]
    found = [(name, piece) for name, text in texts.items() for piece in pieces if piece in text]
    assert found == []
    # What is no secret is still there, wherever a secret was.
    for name in ("stdout", "agent-eval-report/junit.xml", "agent-eval-report/results.json"):
        assert "[redacted] was refused" in texts[name], name
    assert "printed It holds" in texts["agent-eval-report/junit.xml"]
    assert '"BANK_API_KEY":"[redacted]"' in texts["cassettes/of_env.yaml"]
    episodes = json.loads(texts["agent-eval-report/results.json"])["episodes"]
    assert {e["scenario_id"]: e["outcome"] for e in episodes} == {
        "dead": "error",
        "of_env": "passed",
        "of_header": "passed",
        "of_model": "failed",
        "raised": "error",
        "shown": "failed",
        "torn": "error",
    }


OF_A_LOGIN = """
import os

def test_login(episode):
    data = {"user": "bob", "password": "hunter2", "max_tokens": 17}
    with episode.turn("Log in.") as turn:
        turn.tool_call("login", data, result='{"session_token": "tok-abc", "ok": true}')
        turn.reply("Done with " + os.environ["SHOP_API_KEY"])
    print(os.environ["SHOP_API_KEY"])
    assert data == os.environ["SHOP_API_KEY"]
"""


def test_what_stands_under_the_key_of_a_secret_is_in_no_file_of_a_report(tmp_path):
    (tmp_path / "test_login.py").write_text(OF_A_LOGIN)
    secret = "correct-horse-battery"
    done = run_agent_eval("run", ".", cwd=tmp_path, SHOP_API_KEY=secret)
    assert done.returncode == 1, done.stdout + done.stderr
    folder = tmp_path / "agent-eval-report"
    texts = {file.name: file.read_text() for file in folder.rglob("*") if file.is_file()}
    assert {"results.json", "report.html", "verdict.json", "comment.md"} <= set(texts)
    assert any(name.endswith(".jsonl") for name in texts)
    assert not [t for t in (done.stdout, done.stderr, *texts.values()) if secret in t]
    # pytest writes this file, and what a test printed or compared is no data of a tool.
    texts.pop("junit.xml")
    for name, text in texts.items():
        assert "hunter2" not in text, name
        assert "tok-abc" not in text, name
    assert "max_tokens" in texts["results.json"]
    assert "17" in texts["results.json"]
