"""Agents of concurrent episodes: servers of one at a time come through, and end with the run."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step, call
from tests.plugin.conftest import Ran
from tests.processes import started_python, wait_for
from tests.servers.rig import BANK, wait_until_gone

SUITE = """
import asyncio
import os
import sys
import pytest
from meeting import Crowd, let_others_work, meet
from ci_agent_eval.engine import Agent, MCPServer, Provider

crowd = Crowd()
bank = MCPServer(command=[{python!r}, {bank!r}], isolation={isolation!r}, {reset})
agent = Agent(
    provider=Provider("openai:gpt-5-mini", base_url={url!r}),
    mcp_servers=[bank],
    system_prompt="You are a bank.",
)
"""

WITHDRAW = [
    Step(tool_calls=[call("withdraw", account="checking", amount=100)]),
    Step(text="{tool} left"),
]
IDENTIFY = [Step(tool_calls=[call("process_id")]), Step(text="{tool}")]


def write(suite, server, tests, isolation="shared"):
    reset = "reset='reset_balances'" if isolation == "reset" else ""
    head = SUITE.format(
        python=sys.executable, bank=BANK, url=server.base_url, isolation=isolation, reset=reset
    )
    suite.write(head + tests)


def list_processes_in(folder: Path) -> list[int]:
    """Return the other processes whose working directory is this one."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_ours = process.name == str(os.getpid())
            if (process / "cwd").readlink() == folder and not is_ours:
                pids.append(int(process.name))
    return pids


def test_many_on_one_server_of_one_at_a_time_and_the_runs_of_each_in_its_own_episode(suite):
    answers = {f"of {n}.": [f"answer {n}"] for n in range(4)}
    with ModelServer({"*": WITHDRAW, **answers}) as server:
        write(
            suite,
            server,
            """
@pytest.mark.parametrize("number", range(8))
async def test_withdraw(aitest_run, number):
    # The later ones are the first to ask, though their turns are the last to come.
    await let_others_work(2 * (8 - number))
    result = await aitest_run(agent, f"Give me 100 ({number})")
    assert result.final_response == "$1,400.00 left"

@pytest.mark.parametrize("number", range(4))
async def test_ask(episode, request, number):
    await meet(4)
    run = request.getfixturevalue("aitest_run")
    result = await run(Agent(provider=agent.provider), f"of {number}.")
    await meet(4)
    assert result.final_response == f"answer {number}"
""",
            isolation="reset",
        )
        ran = suite.run("--episode-concurrency=6")
    ran.result.assert_outcomes(passed=12)
    for number in range(4):
        turns = ran.episodes[f"test_ask[{number}]"].trajectory.turns
        assert [turn.content for turn in turns] == [f"of {number}.", f"answer {number}"]


def stop_three_that_are_at_work(suite, number: signal.Signals) -> tuple[int | None, list[int]]:
    """Send a signal to a run whose episodes have a server each; return its status and servers."""
    with ModelServer(IDENTIFY) as server:
        write(
            suite,
            server,
            """
@pytest.mark.parametrize("number", range(3))
async def test_held(aitest_run, number):
    await aitest_run(agent, f"Who are you? ({number})")
    await meet(3)
    if number == 0:
        os.write(1, b"\\nall are at work\\n")
    await asyncio.Event().wait()
""",
            isolation="per_episode",
        )
        arguments = ("-m", "pytest", "-s", "--episode-report-dir=report", "--episode-concurrency=3")
        with started_python(*arguments, cwd=suite.pytester.path) as process:
            wait_for(process, "all are at work")
            started = list_processes_in(suite.pytester.path)
            assert len(started) > 3
            process.send_signal(number)
            process.communicate(timeout=600)
    return process.returncode, started


def test_ctrl_c_ends_the_servers_and_keeps_the_calls(suite):
    status, _ = stop_three_that_are_at_work(suite, signal.SIGINT)
    assert list_processes_in(suite.pytester.path) == []
    assert status == pytest.ExitCode.INTERRUPTED
    ran = Ran(pytest.RunResult(0, [], [], 0), suite.pytester.path / "report")
    reasons = {name: e.reason for name, e in ran.episodes.items()}
    assert reasons == {f"test_held[{n}]": "interrupted: KeyboardInterrupt" for n in range(3)}
    for held in ran.results.episodes:
        assert held.trajectory is not None
        assert [made.name for made in held.trajectory.tool_calls()] == ["process_id"]


def test_a_kill_ends_the_servers(suite):
    status, servers = stop_three_that_are_at_work(suite, signal.SIGKILL)
    for pid in servers:
        wait_until_gone(pid)
    assert list_processes_in(suite.pytester.path) == []
    assert status == -signal.SIGKILL
