"""The run stops when its models have used too many tokens."""

from __future__ import annotations

import pytest

from tests.model_server.script import call
from tests.plugin.budget_suite import asking, stopped

NEEDS_EVIDENCE = False

EPISODES = """
@pytest.mark.parametrize("number", range(10))
async def test_asks(aitest_run, number):
    await aitest_run(agent, f"question {number}")
    await asyncio.sleep(0.01)
"""


def test_answers_from_a_cassette_count_as_they_do_in_the_report(suite):
    tests = EPISODES
    with asking(suite, tests):
        assert suite.run("--cassette=record").result.ret == 0
    ran = suite.run("--cassette=replay", "--total-tokens=500")
    stopped(ran, "total_tokens exceeded: 600 of 500")


def test_episodes_side_by_side_are_ended_together_each_with_what_it_has(suite):
    tests = EPISODES.replace("sleep(0.01)", "Event().wait()")
    with asking(suite, tests):
        ran = suite.run("--total-tokens=300", "--episode-concurrency=3")
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    episodes = ran.results.episodes
    assert len(episodes) == 3
    assert {e.outcome for e in episodes} == {"error"}
    assert all("suite budget total_tokens exceeded" in e.reason for e in episodes)
    left = 10 - len(episodes)
    ran.result.stdout.fnmatch_lines([f"STOPPED *; {left} of 10 selected episodes did not run"])


PLAIN = """
from openai import OpenAI

client = OpenAI(base_url=agent.provider.base_url, api_key="k")


def ask(prompt):
    messages = [{"role": "user", "content": prompt}]
    return client.chat.completions.create(model="m", messages=messages).choices[0].message.content


async def ask_again(prompt):
    for number in range(20):
        await asyncio.to_thread(ask, f"{prompt} {number}")
    return "done"
"""

PLAIN_EPISODES = """
@pytest.mark.parametrize("number", range(10))
def test_asks(episode, number):
    ask(f"question {number}")
"""

RUNAWAY = """
async def test_asks(aitest_run):
    await aitest_run(ask_again, "question")
"""


@pytest.mark.parametrize(("tests", "most"), [(PLAIN_EPISODES, 600), (RUNAWAY, 2400)])
def test_model_calls_of_plain_code_stop_the_run_too(suite, tests, most):
    with asking(suite, PLAIN + tests, script=["answer"]) as server:
        ran = suite.run("--total-tokens=500")
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    assert "total_tokens exceeded" in (ran.session.stopped or "")
    assert 5 <= len(server.requests) < 20
    used = sum((e.trajectory and e.trajectory.total_tokens) or 0 for e in ran.results.episodes)
    assert 500 < used <= most


PROGRAM = """
import json, os, urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "tea"}]}).encode()
headers = {"content-type": "application/json", "authorization": "Bearer k"}
for number in range(500):
    urllib.request.urlopen(urllib.request.Request(url, body, headers)).close()
"""

NESTED = """
import sys
from ci_agent_eval.engine import CLIServer

program = Path(__file__).with_name("program.py")
tool = CLIServer(
    "expert", f"{sys.executable} {program}", env={"OPENAI_BASE_URL": agent.provider.base_url}
)
main = Agent(provider=agent.provider, cli_servers=[tool], max_turns=1000)

async def test_asks(aitest_run):
    await aitest_run(main, "question")
"""


def test_model_calls_in_the_tool_of_a_declared_agent_stop_the_run_too(suite):
    asks = {"tool_calls": [call("expert_execute", args="")]}
    with asking(suite, NESTED, script={"question": [asks, "Done"], "tea": ["green"]}) as server:
        suite.pytester.path.joinpath("program.py").write_text(PROGRAM)
        ran = suite.run("--total-tokens=500")
    stopped(ran, "total_tokens exceeded: ")
    assert 5 <= len(server.requests) < 500
