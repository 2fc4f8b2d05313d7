"""The engine, changes that are held, hooks and skips in concurrent episodes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step, call
from tests.plugin.conftest import OPTING_OUT, SCRIPTED_CLOCK, Ran
from tests.processes import started_python, wait_for
from tests.servers.rig import BANK, wait_until_gone

# What a hook may skip runs alone, unless it is let; what is not to run is never started.


HOOKED = (
    SCRIPTED_CLOCK
    + """
def pytest_runtest_setup(item):
    if "hooked" in item.name:
        pytest.skip("not on this machine")
"""
)


def test_a_hook_that_may_skip_it_is_named(suite):
    suite.write(
        """
        import pytest
        from meeting import Crowd, let_others_work

        crowd = Crowd()

        @pytest.mark.parametrize("number", range(3))
        async def test_alone(episode, number):
            with crowd.among():
                await let_others_work()
                assert crowd.most == 1

        async def test_hooked(episode): raise AssertionError
        """,
        conftest=HOOKED,
    )
    ran = suite.run("--episode-concurrency=4")
    ran.result.assert_outcomes(passed=3, skipped=1)
    ran.result.stdout.fnmatch_lines(
        ["note: 4 of the episodes run alone (4: conftest has a hook that may skip it or run it)"]
    )


def test_a_hook_of_another_folder_has_no_say(suite):
    test = "from meeting import meet\nasync def test_meet(episode): await meet(3)"
    suite.pytester.makeconftest("import sys\nsys.path.insert(0, '.')" + OPTING_OUT)
    for folder, names in (("one", "ab"), ("two", "c"), ("with_hook", "d")):
        made = suite.pytester.mkdir(folder)
        for name in names:
            (made / f"test_{name}.py").write_text(test)
    (made / "conftest.py").write_text(HOOKED)
    (made / "test_d.py").write_text("async def test_alone(episode): pass")
    ran = suite.run("--episode-concurrency=3")
    ran.result.assert_outcomes(passed=4)
    ran.result.stdout.fnmatch_lines(["note: 1 of the episodes run alone (1: *conftest* hook *)"])


OVERRIDDEN = """
import asyncio
import pytest
from meeting import meet, until

told = []
begun = asyncio.Event()

@pytest.fixture
def desk(request, monkeypatch):
    told.append("up " + request.node.name)
    yield
    told.append("down " + request.node.name)

@pytest.mark.episode(alone=False)
async def test_first(episode, desk):
    await until(begun)

@pytest.mark.episode(alone=False)
async def test_hooked(episode, desk):
    begun.set()
    try:
        with episode.turn("Hello") as turn:
            turn.reply("Hi")
        await asyncio.Event().wait()
    finally:
        told.append("cancelled")

def test_told():
    first = ["up test_first", "up test_hooked", "down test_first"]
    assert told == [*first, "cancelled", "down test_hooked"]
"""


def test_one_that_is_let_and_skipped_on_its_turn_is_cancelled(suite):
    suite.write(OVERRIDDEN, conftest=HOOKED)
    ran = suite.run("--episode-concurrency=2")
    ran.result.assert_outcomes(passed=2, skipped=1)
    skipped = ran.episodes["test_hooked"]
    assert (skipped.outcome, skipped.reason) == ("skipped", "not on this machine")
    assert "alone" not in ran.result.stdout.str()


NOT_RUN = """
import pytest

begun = []

@pytest.fixture
def desk(): begun.append("desk")

async def test_first(episode): pass

@pytest.mark.skip(reason="later")
async def test_a(episode, desk): begun.append("a")

@pytest.mark.skipif(True, reason="later")
async def test_b(episode, desk): begun.append("b")

@pytest.mark.skipif("sys.version_info > (3,)", reason="later")
async def test_c(episode, desk): begun.append("c")

@pytest.mark.xfail(run=False)
async def test_d(episode, desk): begun.append("d")

@pytest.mark.skip
class TestDesk:
    async def test_e(self, episode, desk): begun.append("e")

@pytest.mark.skipif("nonsense", reason="later")
async def test_f(episode, desk): begun.append("f")

async def test_last(episode):
    assert begun == []
"""


def test_what_is_not_to_run_is_never_started(suite):
    suite.write(NOT_RUN)
    seen = set()
    for concurrency in (1, 8):
        ran = suite.run(f"--episode-concurrency={concurrency}")
        ran.result.assert_outcomes(passed=2, skipped=4, xfailed=1, errors=1)
        seen.add((ran.folder / "results.json").read_bytes())
    assert len(seen) == 1


def test_an_expected_failure_runs_beside_others(suite):
    suite.write("""
        import pytest
        from meeting import meet

        @pytest.mark.xfail(reason="known", strict=True)
        async def test_a(episode):
            await meet(3)
            assert False

        @pytest.mark.xfail(False, reason="no", run=False)
        async def test_b(episode): await meet(3)

        @pytest.mark.skipif(False, reason="no")
        async def test_c(episode): await meet(3)
    """)
    suite.run("--episode-concurrency=3").result.assert_outcomes(passed=2, xfailed=1)
    ran = suite.run("--episode-concurrency=3", "--runxfail")
    ran.result.assert_outcomes(passed=2, failed=1)


def test_what_tearing_it_down_raises_is_told_though_it_is_the_last_one(suite):
    text = OVERRIDDEN.partition("def test_told")[0]
    text = text.replace(
        '    told.append("down " + request.node.name)\n',
        '    if "hooked" in request.node.name: raise OSError("jammed")\n',
    )
    suite.write(text, conftest=HOOKED)
    ran = suite.run("--episode-concurrency=2")
    ran.result.assert_outcomes(passed=1, skipped=1, errors=1)
    ran.result.stdout.fnmatch_lines(["ERROR *test_hooked*jammed*"])


# Autouse fixtures with `monkeypatch`: episodes overlap while they make the same changes.


HEAD = """
import os
from pathlib import Path
import pytest
from meeting import Crowd, let_others_work, meet

crowd = Crowd()

@pytest.fixture(autouse=True)
def desk(monkeypatch, request):
    name = request.node.callspec.params.get("name")
    if name is not None:
        monkeypatch.setenv("DESK", name)
        monkeypatch.setenv("PATH", "/desk", prepend=os.pathsep)
        monkeypatch.delenv("ROOM", raising=False)
        monkeypatch.chdir(Path(__file__).parent)
    with monkeypatch.context() as brief:
        brief.setenv("BRIEF", request.node.name)
    yield
    assert os.environ.get("DESK") == name
"""

CONFTEST = """
import os

def pytest_sessionfinish():
    assert "DESK" not in os.environ and "/desk" not in os.environ["PATH"]
"""


def test_the_same_changes_are_held_until_the_last_of_them_ends(suite):
    suite.write(
        f"""{HEAD}
@pytest.mark.parametrize("name", ["a"])
@pytest.mark.parametrize("number", range(4))
async def test_meet(episode, name, number):
    with crowd.among():
        await meet(4)
        await let_others_work(number)
        assert os.environ["DESK"] == "a"
        assert os.environ["PATH"].count("/desk") == 1
""",
        CONFTEST,
    )
    ran = suite.run_apart("--episode-concurrency=4")
    ran.result.assert_outcomes(passed=4)
    assert "run alone" not in ran.result.stdout.str()


def test_other_changes_wait_for_their_turn_and_count_once(suite):
    suite.write(
        f"""{HEAD}
@pytest.mark.parametrize("name", "aabbb")
async def test_named(episode, request, name):
    with crowd.among():
        await let_others_work()
        assert os.environ["DESK"] == name

@pytest.mark.parametrize("number", range(3))
async def test_plain(episode, number):
    with crowd.among():
        await meet(3, "plain")
        assert "DESK" not in os.environ
""",
        CONFTEST,
    )
    ran = suite.run_apart("--episode-concurrency=8")
    ran.result.assert_outcomes(passed=8)
    assert {episode.attempt for episode in ran.results.episodes} == {1}


def test_a_change_in_the_body_is_refused_while_others_overlap(suite):
    suite.write(
        """
import asyncio
import pytest
from meeting import meet, until

tried = asyncio.Event()

@pytest.fixture(autouse=True)
def settings(monkeypatch, request):
    request.node.change = lambda: monkeypatch.setenv("DESK", "late")

@pytest.mark.parametrize("number", range(2))
async def test_late(episode, request, number):
    await meet(2)
    if number == 0:
        return await until(tried)
    try:
        request.node.change()
    finally:
        tried.set()
"""
    )
    ran = suite.run_apart("--episode-concurrency=2")
    ran.result.assert_outcomes(passed=1, failed=1)
    ran.result.stdout.fnmatch_lines(
        ["*test_late?1?: monkeypatch.setenv changes the whole process while other episodes run;*"]
    )


# Agents of concurrent episodes: servers of one at a time come through, and end with the run.


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
