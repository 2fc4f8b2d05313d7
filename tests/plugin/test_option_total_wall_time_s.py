"""The run stops when it has taken too long, also in the midst of an episode."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.plugin.budget_suite import LATE, asking, stopped


@pytest.fixture
def suite(suite):
    """These suites are about how long a run takes, and need no evidence."""
    return suite.without_evidence()


EPISODES = """
@pytest.mark.parametrize("number", range(4))
async def test_waits(aitest_run, number):
    await aitest_run(agent, f"question {number}")
    Path("late").touch()
    await asyncio.Event().wait()
"""


def test_what_runs_is_ended_when_the_time_is_over(suite, workers):
    with asking(suite, EPISODES, conftest=LATE):
        ran = suite.run("--total-wall-time-s=1000", workers)
    stopped(ran, "total_wall_time_s exceeded: 9")
    episodes = ran.results.episodes
    assert 1 <= len(episodes) <= 2
    assert {e.outcome for e in episodes} == {"error"}
    assert any(e.trajectory and len(e.trajectory.agent_turns) == 1 for e in episodes)


def test_a_model_that_does_not_answer_is_not_waited_for(suite):
    tests = """
async def test_waits(aitest_run):
    asyncio.get_running_loop().call_later(1, Path("late").touch)
    await aitest_run(agent, "hello?", timeout_s=None)
"""
    from tests.model_server.script import Step

    with asking(suite, tests, [Step(hang=True)], LATE):
        ran = suite.run("--total-wall-time-s=1000")
    stopped(ran, "total_wall_time_s exceeded: 9")
    (episode,) = ran.results.episodes
    assert (episode.outcome, episode.stop_reason) == ("error", "cancelled")
    assert [turn.role for turn in episode.trajectory.turns] == ["user"]


def test_plain_code_ends_by_itself_and_nothing_starts_after_it(suite):
    tests = """
def test_works(episode):
    Path("late").touch()

def test_is_next(episode):
    pass
"""
    with asking(suite, tests, conftest=LATE):
        ran = suite.run("--total-wall-time-s=1000")
    stopped(ran, "total_wall_time_s exceeded: ")
    assert [e.outcome for e in ran.results.episodes] == ["passed"]
    ran.result.stdout.fnmatch_lines(["STOPPED *; 1 of 2 selected episodes did not run"])


def test_a_stopped_episode_tears_its_fixtures_down(suite):
    tests = """
@pytest.fixture(scope="module")
def module():
    yield
    Path("module").touch()

@pytest.fixture
def own():
    yield
    Path("own").touch()

async def test_waits(episode, module, own):
    Path("late").touch()
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        Path("test").touch()

async def test_is_next(episode, module): pass
"""
    with asking(suite, tests, conftest=LATE):
        ran = suite.run("--total-wall-time-s=1000")
    stopped(ran, "total_wall_time_s exceeded: ")
    assert all((suite.pytester.path / name).exists() for name in ("module", "own", "test"))


def test_collecting_alone_takes_its_time(suite):
    with asking(suite, EPISODES):
        result = suite.pytester.runpytest_subprocess("--collect-only", "--total-wall-time-s=0")
    assert result.ret == 0


def test_nothing_is_left_behind_after_ctrl_c(suite, tmp_path):
    """The file that workers share lies in a folder of the run's own, and goes with it."""
    tests = """
@pytest.mark.parametrize("number", range(2))
async def test_waits(aitest_run, number):
    await aitest_run(agent, f"question {number}")
    Path(f"asked-{number}").touch()
    await asyncio.Event().wait()
"""
    with asking(suite, tests):
        environ = {**os.environ, "TMPDIR": str(tmp_path)}
        arguments = ["-n2", "--total-cost-usd=5", "-p", "no:cacheprovider"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=suite.pytester.path,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        wait_for(lambda: len(list(suite.pytester.path.glob("asked-*"))) == 2, process)
        (folder,) = tmp_path.glob("agent-eval-run-*")
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / "run.sqlite3").exists()
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=600)
    assert not list(tmp_path.glob("agent-eval-run-*"))


def wait_for(is_so, process):
    """Wait until it is so, while the process lives."""
    tick = iter(range(600))
    while not is_so():
        assert process.poll() is None, process.communicate()[0]
        assert next(tick, None) is not None, "it takes too long"
        signal.sigtimedwait([], 0.1)


def test_workers_without_limits_make_no_folder(suite, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    suite.write(
        """
import tempfile
from pathlib import Path

def test_looks(episode):
    assert tempfile.gettempdir() == TMPDIR
    assert not list(Path(tempfile.gettempdir()).glob("agent-eval-run-*"))
""".replace("TMPDIR", repr(str(tmp_path)))
    )
    ran = suite.run("-n1")
    assert ran.result.ret == 0
