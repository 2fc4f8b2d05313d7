"""A killed run with `--cassette=auto`: the next run sends no answered request again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ci_agent_eval.contract.results import Results
from tests.model_server import ModelServer
from tests.processes import run_agent_eval

HEAD = """
import os, signal
from pathlib import Path

import openai
import pytest

OPTIONS = {{"base_url": {base!r}, "api_key": "sk-test-of-nobody-at-all", "max_retries": 0}}

def kill_once():
    if not Path("killed").exists():
        Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
"""
SUITES = {
    "traffic": """
async def ask(message):
    async with openai.AsyncOpenAI(**OPTIONS) as client:
        asked = [{{"role": "user", "content": message}}]
        answer = await client.chat.completions.create(model="gpt-5-mini", messages=asked)
        return answer.choices[0].message.content

def build_agent():
    return ask
""",
    "pydantic_ai": """
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

def build_agent():
    client = openai.AsyncOpenAI(**OPTIONS)
    return Agent(OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(openai_client=client)))
""",
}
TESTS = """
@pytest.mark.episode("first", iterations=2)
async def test_first(aitest_run, request):
    result = await aitest_run(build_agent(), f"Hello from {{request.node.name}}")
    assert "fine" in result.final_response

@pytest.mark.episode("second")
async def test_second(aitest_run):
    agent = build_agent()
    await aitest_run(agent, "Is my order late?")
    kill_once()
    result = await aitest_run(agent, "Thank you.")
    assert "fine" in result.final_response

@pytest.mark.episode("third")
async def test_third(aitest_run):
    result = await aitest_run(build_agent(), "Goodbye.")
    assert "fine" in result.final_response
"""


@pytest.mark.parametrize("kind", SUITES)
def test_no_answered_request_is_sent_again(tmp_path: Path, kind: str) -> None:
    with ModelServer({"*": ["It is fine."]}) as server:
        suite = (HEAD + SUITES[kind] + TESTS).format(base=server.base_url)
        (tmp_path / "test_desk.py").write_text(suite)
        killed = run_agent_eval("run", ".", "--", "--cassette=auto", cwd=tmp_path)
        assert (killed.returncode, len(server.requests)) == (1, 3), killed.stdout

        done = run_agent_eval("run", ".", "--", "--cassette=auto", cwd=tmp_path)
        sent = Counter(json.dumps(asked.body, sort_keys=True) for asked in server.requests)

    assert done.returncode == 0, done.stdout + done.stderr
    assert set(sent.values()) == {1}
    assert len(sent) == 5
    results = Results.model_validate_json(
        (tmp_path / "agent-eval-report/results.json").read_bytes()
    )
    assert [one.outcome for one in results.episodes] == ["passed"] * 4
