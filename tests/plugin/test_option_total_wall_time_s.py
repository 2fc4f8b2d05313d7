"""The run stops when it has taken too long, also in the midst of an episode."""

from __future__ import annotations

from tests.model_server.script import Step
from tests.plugin.budget_suite import LATE, asking, stopped

NEEDS_EVIDENCE = False

EPISODES = """
@pytest.fixture(scope="module")
def module():
    yield
    Path("module").touch()

@pytest.fixture
def own():
    yield
    Path("own").touch()

@pytest.mark.parametrize("number", range(2))
async def test_waits(aitest_run, number, module, own):
    await aitest_run(agent, f"question {number}")
    Path("late").touch()
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        Path("test").touch()
"""


def test_what_runs_is_ended_and_torn_down_when_the_time_is_over(suite):
    with asking(suite, EPISODES, conftest=LATE):
        assert suite.run("--collect-only", "--total-wall-time-s=0").result.ret == 0
        ran = suite.run("--total-wall-time-s=1000")
    stopped(ran, "total_wall_time_s exceeded: 9")
    (episode,) = ran.results.episodes
    assert (episode.outcome, len(episode.trajectory.agent_turns)) == ("error", 1)
    assert all((suite.pytester.path / name).exists() for name in ("module", "own", "test"))


def test_a_model_that_does_not_answer_is_not_waited_for(suite):
    tests = """
async def test_waits(aitest_run):
    asyncio.get_running_loop().call_later(0.2, Path("late").touch)
    await aitest_run(agent, "hello?", timeout_s=None)
"""
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
