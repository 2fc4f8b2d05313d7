"""Suites of functions with other libraries: four episodes at once, recorded, stopped, replayed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frameworks.conftest import ENVIRONMENT, build_environ
from tests.frameworks.frameworks import FUNCTIONS
from tests.model_server import ModelServer
from tests.model_server.script import Step, call
from tests.replayed_results import normalize

ROOT = Path(__file__).parents[2]
EPISODES = 4
SUITE = f"""
import pytest
from tests.frameworks import functions

@pytest.mark.episode(budgets=BUDGETS)
@pytest.mark.parametrize("number", range({EPISODES}))
async def test_balance(aitest_run, number):
    prompt = f"How much is on checking? In conversation {{number:02}}."
    result = await aitest_run(functions.NAME, prompt)
    assert (result.success, result.final_response) == (True, "$1,500.00.")
"""
TOOLS = {
    "claude_agent_sdk": "mcp__desk__get_balance",
    "semantic_kernel": "desk-get_balance",
    "dspy": None,  # its predictions are texts
}
REQUESTS = {"claude_agent_sdk": 3}  # one of them asks for the conversation's title
TEXT = "[[ ## account ## ]]\nchecking\n\n[[ ## answer ## ]]\n$1,500.00.\n\n[[ ## completed ## ]]"


@pytest.fixture(params=FUNCTIONS.get(ENVIRONMENT, ()))
def name(request):
    """The name of the function."""
    return request.param


@pytest.fixture
def server(name):
    """The model's answers in each conversation."""
    tool = TOOLS.get(name, "get_balance")
    steps = [Step(tool_calls=[call(tool, account="checking")]), Step(text="$1,500.00.")]
    if tool is None:
        steps = [Step(text=TEXT)]
    script = {"Write the title": [Step(text="Balance")]}  # which Claude asks for beside the answer
    script |= {f"conversation {number:02}.": steps for number in range(EPISODES)}
    with ModelServer(script) as server:
        yield server


@pytest.fixture
def run(name, server, tmp_path):
    """Run the suite; return the episodes and pytest's output."""

    def run(*options, budgets=None, without=()):
        suite = SUITE.replace("NAME", name).replace("BUDGETS", repr(budgets))
        (tmp_path / "test_suite.py").write_text(suite)
        environ = {**os.environ, **build_environ(server), "PYTHONPATH": str(ROOT)}
        environ |= {"HOME": str(tmp_path), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--episode-report-dir=out", *options],
            cwd=tmp_path,
            env={key: value for key, value in environ.items() if key not in without},
            capture_output=True,
            text=True,
            check=False,
        )
        episodes = json.loads((tmp_path / "out/results.json").read_text())["episodes"]
        return episodes, done.stdout[-5000:] + done.stderr[-2000:]

    return run


def test_a_recorded_run_is_replayed_without_a_key(name, run, server):
    recorded, output = run("--cassette=record", "--episode-concurrency=4")
    assert f"{EPISODES} passed" in output, output
    requests = REQUESTS.get(name, 2)
    assert len(server.requests) == requests * EPISODES
    for one in recorded:
        turns = [turn for turn in one["trajectory"]["turns"] if turn["role"] == "assistant"]
        assert len(turns) == requests
        assert all(turn["tokens"]["input"] for turn in turns)
        called = {made["name"] for turn in turns for made in turn.get("tool_calls", ())}
        assert called == {TOOLS.get(name, "get_balance")} - {None}

    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
    replayed, output = run("--cassette=replay", "--episode-concurrency=4", without=keys)
    assert f"{EPISODES} passed" in output, output
    assert len(server.requests) == requests * EPISODES
    assert normalize(replayed, {"traffic"}) == normalize(recorded, {"traffic"})


def test_a_budget_stops_it_after_the_allowed_request(run, server):
    episodes, output = run("--episode-concurrency=4", budgets={"max_turns": 1})
    assert [one["stop_reason"] for one in episodes] == ["max_turns"] * EPISODES, output
    assert len(server.requests) == EPISODES
