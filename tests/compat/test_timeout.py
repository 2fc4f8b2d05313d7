"""pytest-timeout: an episode that takes too long is failed, with the reason, and nothing is lost."""

from __future__ import annotations

import pytest

SUITE = """
import asyncio
import signal
import threading
import pytest

def end_timer():  # no machine is too slow for what comes before
    signal.setitimer(signal.ITIMER_REAL, 0.001)

def wait():
    end_timer()
    threading.Event().wait(30)

def test_a_quick_one(episode): pass

@pytest.mark.timeout(100)
def test_slow(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    wait()

@pytest.mark.timeout(100)
async def test_slow_async(episode):
    end_timer()
    await asyncio.Event().wait()

@pytest.mark.timeout(200)
@pytest.mark.episode(iterations=2)
def test_slow_at_first(episode):
    if episode.iteration == 1:
        wait()

@pytest.fixture
def slow_desk():
    wait()

@pytest.mark.timeout(100)
def test_slow_setup(slow_desk, episode): pass

async def test_z_quick_at_last(episode):
    await asyncio.sleep(0)
"""


@pytest.fixture
def suite(suite):
    """These suites are about time, and need no evidence."""
    return suite.without_evidence()


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "-n2"])
def test_an_episode_past_its_time_is_failed_with_the_reason(suite, workers):
    suite.write(test_slow=SUITE)
    ran = suite.run("--timeout-method=signal", *workers, plugins=("timeout", "xdist"))
    assert ran.status == 1, ran.output
    assert ran.outcomes == {
        "test_a_quick_one": "passed",
        "test_slow": "failed",
        "test_slow_async": "failed",
        "test_slow_at_first[1-of-2]": "failed",
        "test_slow_at_first[2-of-2]": "passed",
        "test_slow_setup": "error",
        "test_z_quick_at_last": "passed",
    }
    for name in ("test_slow", "test_slow_async", "test_slow_at_first[1-of-2]", "test_slow_setup"):
        assert "Timeout" in ran.reasons[name]
        assert ("200.0s" if "at_first" in name else "100.0s") in ran.reasons[name]
    slow = next(e for e in ran.episodes if e["nodeid"].endswith("::test_slow"))
    assert slow["trajectory_summary"]["steps_count"] == 1


def test_its_thread_method_ends_the_process_and_the_journal_says_where(suite):
    # Its timer is a thread, which nothing can end: 5 s are enough to come to the episode.
    tests = SUITE.replace("timeout(100)", "timeout(5)").replace("    end_timer()\n", "")
    suite.write(test_slow=tests)
    ran = suite.run("--timeout-method=thread", "-k", "quick or test_slow", plugins=("timeout",))
    assert ran.status == 1
    assert "Timeout" in ran.output
    (journal,) = (ran.root / "report/episodes").iterdir()
    lines = journal.read_text("utf-8").splitlines()
    assert '"event":"ended"' in lines[1]
    assert "test_a_quick_one" in lines[1]
    assert '"event":"started"' in lines[-1]
    assert "test_slow" in lines[-1]
    assert "the process ended before the episode did" in lines[-1]
