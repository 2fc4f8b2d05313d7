"""A signal at a moment when several are at work: they end, clean up and are recorded."""

from __future__ import annotations

import signal
import subprocess
from contextlib import contextmanager

import pytest

from ci_agent_eval.pytest_plugin.concurrency import session_loop
from ci_agent_eval.runner.suite import GRACE_SECONDS
from tests.plugin.conftest import Ran
from tests.processes import started_python, wait_for

FIXTURES = """
def tell(*words):
    with Path("told.txt").open("a") as file:
        print(*words, file=file)

@pytest.fixture(scope="module")
def floor():
    tell("up floor")
    yield
    tell("down floor")

@pytest.fixture
def desk(request, floor):
    tell("up", request.node.name)
    yield
    tell("down", request.node.name)
"""
"""Fixtures that write when they are set up and torn down; they need `Path` and `pytest`."""

WORKING = (
    """
import asyncio
import os
import pytest
from pathlib import Path
from meeting import meet

"""
    + FIXTURES
    + """
@pytest.mark.parametrize("number", range(6))
async def test_work(episode, desk, number):
    with episode.turn("Hello") as turn:
        turn.tool_call("lookup")
    if number == 0:
        return
    try:
        await meet(4)
        if number == 1:
            os.write(1, b"\\nall are at work\\n")
        BODY
    finally:
        tell("cleaned", number)
"""
)


@contextmanager
def working(suite, body="await asyncio.Event().wait()", options=()):
    """Run the suite in a process of its own, up to the moment when all are at work."""
    suite.write(WORKING.replace("BODY", body))
    arguments = (
        *("-m", "pytest", "-s", "--episode-report-dir=report", "--junit-xml=report/junit.xml"),
        "--episode-concurrency=4",
        *options,
    )
    with started_python(*arguments, cwd=suite.pytester.path) as process:
        wait_for(process, "all are at work")
        yield process


def ended(process) -> int:
    """Return the exit status; the time is one that only a hung run reaches."""
    try:
        process.communicate(timeout=600)
    except subprocess.TimeoutExpired:
        pytest.fail("the run hangs")
    return process.returncode


def left(suite) -> Ran:
    return Ran(pytest.RunResult(0, [], [], 0), suite.pytester.path / "report")


def test_ctrl_c(suite):
    with working(suite) as process:
        process.send_signal(signal.SIGINT)
        assert ended(process) == pytest.ExitCode.INTERRUPTED
    ran = left(suite)
    assert (ran.session.state, ran.session.exit_status) == ("interrupted", 2)
    working_ones = [f"test_work[{number}]" for number in range(1, 5)]
    assert set(ran.episodes) == {"test_work[0]", *working_ones}
    for name in working_ones:
        cut_off = ran.episodes[name]
        assert (cut_off.outcome, cut_off.reason) == ("error", "interrupted: KeyboardInterrupt")
        assert cut_off.trajectory is not None
        assert [call.name for call in cut_off.trajectory.tool_calls()] == ["lookup"]
    told = (suite.pytester.path / "told.txt").read_text().splitlines()
    for number in range(1, 5):
        assert told.count(f"cleaned {number}") == 1
        assert told.count(f"down test_work[{number}]") == 1
    assert told[-1] == "down floor"


def test_ctrl_c_again_while_they_clean_up_loses_none_of_them(suite):
    body = """
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            os.write(1, f"\\ncleaning up {number}\\n".encode())
            await asyncio.Event().wait()
"""
    with working(suite, body) as process:
        process.send_signal(signal.SIGINT)
        for number in range(1, 5):
            wait_for(process, f"cleaning up {number}")
        process.send_signal(signal.SIGINT)
        assert ended(process) == pytest.ExitCode.INTERRUPTED
    cut_off = [line.episode for line in left(suite).journal[-4:]]
    assert {e.nodeid[-3:] for e in cut_off} == {"[1]", "[2]", "[3]", "[4]"}
    assert {e.reason for e in cut_off} == {"interrupted: KeyboardInterrupt"}
    assert all(e.trajectory.turns[-1].tool_calls for e in cut_off)


def test_agent_eval_run_ends_their_clean_up_before_it_kills_pytest(suite):
    body = """
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()
"""
    suite.pytester.makepyfile(
        patient="""
        from ci_agent_eval.pytest_plugin.concurrency import session_loop

        session_loop.CLEAN_UP_S = 1_000_000
        """
    )
    with working(suite, body, ("-p", "patient", "--episode-watched")) as process:
        process.send_signal(signal.SIGINT)
        assert ended(process) == pytest.ExitCode.INTERRUPTED
    cut_off = [line.episode for line in left(suite).journal[-4:]]
    assert {e.reason for e in cut_off} == {"interrupted: KeyboardInterrupt"}
    assert session_loop.WATCHED_CLEAN_UP_S < GRACE_SECONDS


CLEANING_UP = (
    """
import asyncio
import os
import signal
import threading
import pytest
from pathlib import Path
from meeting import meet

"""
    + FIXTURES
    + """
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(4))
async def test_work(episode, desk, number):
    try:
        await meet(4)
        if number == 1:
            os.write(1, b"\\nall are at work\\n")
        while True:
            await asyncio.sleep(0)
    finally:
        await clean_up(number)
        tell("cleaned", number)

async def test_late(episode):
    tell("started late")

"""
)

ALARM = """
async def clean_up(number):
    await meet(4, "clean-up")
    if number == 2:
        signal.raise_signal(signal.SIGALRM)  # before the time of the first, in a step of another
    for _ in range(10):
        await asyncio.sleep(0)
"""

SIGNALLED_CHILD = """
async def clean_up(number):
    await meet(4, "clean-up")
    if number == 1:
        tell("cleaned", number)
        raise KeyboardInterrupt
    for _ in range(100):
        await asyncio.sleep(0)
"""


@pytest.mark.parametrize("clean_up", [ALARM, SIGNALLED_CHILD], ids=["alarm", "child"])
def test_the_clean_up_is_not_cut_short_by_others(suite, clean_up):
    suite.write(CLEANING_UP + clean_up)
    arguments = ("-m", "pytest", "-s", "--episode-report-dir=report", "--episode-concurrency=4")
    with started_python(*arguments, "-p", "timeout", cwd=suite.pytester.path) as process:
        wait_for(process, "all are at work")
        process.send_signal(signal.SIGINT)
        assert ended(process) == pytest.ExitCode.INTERRUPTED
    ran = left(suite)
    assert set(ran.episodes) == {f"test_work[{number}]" for number in range(4)}
    assert {e.reason for e in ran.episodes.values()} == {"interrupted: KeyboardInterrupt"}
    told = (suite.pytester.path / "told.txt").read_text().splitlines()
    # The alarm of the first may end its own clean-up.
    assert [told.count(f"cleaned {number}") for number in range(1, 4)] == [1] * 3
    assert "started late" not in told


def test_ctrl_c_in_a_setup_that_was_ahead_of_its_turn(suite):
    suite.write("""
        import asyncio
        import os
        import threading
        import pytest
        from pathlib import Path

        @pytest.fixture
        def desk():
            yield
            Path("down.txt").write_text("down")

        @pytest.fixture
        def blocks(desk):
            os.write(1, b"\\nsetting up\\n")
            threading.Event().wait(600)

        async def test_first(episode):
            with episode.turn("Hello") as turn:
                turn.tool_call("lookup")
            await asyncio.Event().wait()

        async def test_second(episode, blocks): pass
    """)
    arguments = ("-m", "pytest", "-s", "--episode-report-dir=report", "--episode-concurrency=2")
    with started_python(*arguments, cwd=suite.pytester.path) as process:
        wait_for(process, "setting up")
        process.send_signal(signal.SIGINT)
        assert ended(process) == pytest.ExitCode.INTERRUPTED
    ran = left(suite)
    assert {n: e.reason for n, e in ran.episodes.items()} == {
        "test_first": "interrupted: KeyboardInterrupt",
        "test_second": "interrupted: KeyboardInterrupt",
    }
    assert (suite.pytester.path / "down.txt").read_text() == "down"


def test_ctrl_c_while_one_that_runs_alone_is_at_work(suite):
    suite.write("""
        import asyncio
        import os
        import pytest

        async def test_first(episode): pass
        async def test_alone(episode, monkeypatch):
            os.write(1, b"\\nat work\\n")
            await asyncio.Event().wait()
        async def test_last(episode): pass
    """)
    arguments = ("-m", "pytest", "-s", "--episode-report-dir=report", "--episode-concurrency=4")
    with started_python(*arguments, cwd=suite.pytester.path) as process:
        wait_for(process, "at work")
        process.send_signal(signal.SIGINT)
        assert ended(process) == pytest.ExitCode.INTERRUPTED
    ran = left(suite)
    assert {n: e.reason for n, e in ran.episodes.items()} == {
        "test_first": None,
        "test_alone": "interrupted: KeyboardInterrupt",
    }
