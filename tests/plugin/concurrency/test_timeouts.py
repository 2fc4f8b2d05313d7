"""pytest-timeout ends the episode whose turn it is, wherever its signal comes.

Every timeout is long: the suites let pytest-timeout's timer end when the episode that is to be
timed out waits for ever, so that the speed of the machine does not matter.
"""

from __future__ import annotations

import pytest

from tests.plugin.conftest import timed_out
from tests.samples import run_sample

TIMER = '''
"""Ends the timer of pytest-timeout at a moment that the suite chooses."""

import asyncio
import signal
from collections import defaultdict

running = defaultdict(asyncio.Event)
"""By the name of a test: its timer runs."""


async def end_at_turn_of(name):
    """Wait for the turn of this test, and let its time be over."""
    await running[name].wait()
    end()


def end():
    """Let the time of the test whose timer runs be over."""
    signal.setitimer(signal.ITIMER_REAL, 0.001)
'''

WATCH_TURNS = """
import sys
import pytest
from ci_agent_eval.pytest_plugin.concurrency import session_loop

session_loop.TICKS = {ticks}
sys.path.insert(0, ".")
import timer

@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item):
    result = yield
    timer.running[item.name].set()
    return result
"""


@pytest.fixture
def timed(suite):
    """Write tests that may import `timer`."""

    def write(tests, ticks=900):
        suite.pytester.makepyfile(timer=TIMER)
        suite.write(tests, conftest=WATCH_TURNS.format(ticks=ticks))

    return write


SLOW = """
import asyncio
import pytest
import timer
from meeting import DEADLINE_S

was_ended = asyncio.Event()

@pytest.fixture
def desk(request):
    yield
    with open("told.txt", "a") as file:
        print("down", request.node.name, file=file)

async def test_first(episode, desk): await asyncio.sleep(0)

@pytest.mark.timeout(900)
async def test_slow(episode, desk):
    with episode.turn("Hello") as turn:
        turn.tool_call("lookup")
    try:
        await timer.end_at_turn_of("test_slow")
        await asyncio.Event().wait()
    finally:
        was_ended.set()
        with open("told.txt", "a") as file:
            print("cleaned up", file=file)

@pytest.mark.parametrize("number", range(4))
async def test_others(episode, desk, number):
    # Always at work, and nearly never waiting: the signal comes in a step of these.
    async with asyncio.timeout(DEADLINE_S):
        while not was_ended.is_set():
            sum(range(20000))
            await asyncio.sleep(0)
"""


def test_the_slow_one_fails_and_no_other(suite, timed):
    timed(SLOW)
    ran = suite.run_apart("--episode-concurrency=4")
    ran.result.assert_outcomes(passed=5, failed=1)
    slow = ran.episodes["test_slow"]
    assert slow.outcome == "failed"
    assert timed_out(900.0) in slow.reason
    assert slow.trajectory is not None
    assert [call.name for call in slow.trajectory.tool_calls()] == ["lookup"]
    told = (suite.pytester.path / "told.txt").read_text().splitlines()
    assert told.index("cleaned up") < told.index("down test_slow")
    assert sum(line.startswith("down") for line in told) == 6


def test_a_signal_between_two_steps_of_the_loop_ends_the_one_whose_turn_it_is(suite):
    """The loop logs what a callback raises, and goes on."""
    suite.write("""
        import asyncio
        import signal
        import pytest

        async def test_slow(episode):
            asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGALRM)
            try:
                await asyncio.Event().wait()
            finally:
                episode.check("cleaned up", True)

        @pytest.mark.parametrize("number", range(3))
        async def test_others(episode, number):
            await asyncio.sleep(0)
    """)
    ran = suite.run_apart("--episode-concurrency=4", "--timeout=900")
    ran.result.assert_outcomes(passed=3, failed=1)
    slow = ran.episodes["test_slow"]
    assert timed_out(900.0) in slow.reason
    assert slow.assertions[0].name == "cleaned up"


def test_each_slow_one_has_its_own_time_from_its_turn_on(suite, timed):
    timed("""
        import asyncio
        import pytest
        import timer

        @pytest.mark.parametrize("number", range(3))
        async def test_slow(episode, number):
            await timer.end_at_turn_of(f"test_slow[{number}]")
            await asyncio.Event().wait()

        async def test_quick(episode): pass
    """)
    ran = suite.run_apart("--episode-concurrency=4", "--timeout=900")
    ran.result.assert_outcomes(passed=1, failed=3)
    for number in range(3):
        assert "Timeout" in ran.episodes[f"test_slow[{number}]"].reason


def test_the_code_of_others_is_not_interrupted_however_long_the_end_takes(suite, timed):
    """As on a machine so slow that the timer ends again before the slow one has ended."""
    timed("""
        import asyncio
        import signal
        import timer

        cleans_up, may_end = asyncio.Event(), asyncio.Event()

        async def test_slow(episode):
            try:
                await asyncio.Event().wait()
            finally:
                cleans_up.set()
                await may_end.wait()

        async def raise_alarms():
            signal.raise_signal(signal.SIGALRM)  # the time of the slow one is over
            signal.raise_signal(signal.SIGALRM)  # a tick

        async def test_other(episode):
            await timer.running["test_slow"].wait()
            try:
                await asyncio.create_task(raise_alarms())
                await cleans_up.wait()
                assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
            finally:
                may_end.set()
    """)
    ran = suite.run_apart("--episode-concurrency=2", "--timeout=900")
    ran.result.assert_outcomes(passed=1, failed=1)
    assert timed_out(900.0) in ran.episodes["test_slow"].reason


def test_a_setup_ahead_is_not_interrupted(suite, timed):
    timed("""
        import asyncio
        import signal
        import pytest

        @pytest.fixture
        def desk():
            signal.raise_signal(signal.SIGALRM)
            return "open"

        @pytest.fixture
        async def async_desk(desk):
            signal.raise_signal(signal.SIGALRM)
            return desk

        async def test_slow(episode): await asyncio.Event().wait()
        async def test_other(async_desk, episode): assert async_desk == "open"
    """)
    ran = suite.run_apart("--episode-concurrency=2", "--timeout=900")
    ran.result.assert_outcomes(passed=1, failed=1)
    assert timed_out(900.0) in ran.episodes["test_slow"].reason


@pytest.mark.parametrize("blocks", run_sample([("first",), ("second",)], {1}))
def test_one_that_blocks_the_loop_for_ever_is_the_one_that_fails(suite, timed, blocks):
    timed(
        f"""
        import asyncio
        import threading
        import pytest
        import timer
        from meeting import let_others_work, meet

        @pytest.mark.parametrize("name", ["first", "second"])
        async def test_one(episode, name):
            await meet(2)
            if name == "{blocks}":
                # The second blocks the loop while the timer of the first runs.
                await timer.end_at_turn_of("test_one[first]")
                threading.Event().wait()
            await asyncio.sleep(0)

        async def test_last(episode): pass
    """,
        ticks=1,
    )
    ran = suite.run_apart("--episode-concurrency=2", "--timeout=900")
    outcomes = {name: e.outcome for name, e in ran.episodes.items()}
    assert outcomes[f"test_one[{blocks}]"] == "failed"
    assert outcomes["test_last"] == "passed"
    assert "Timeout" in ran.episodes[f"test_one[{blocks}]"].reason


@pytest.mark.parametrize(
    "fixture",
    [
        "def blocks(): timer.end(); threading.Event().wait()",
        "async def blocks(): timer.end(); await asyncio.Event().wait()",
    ],
    ids=["sync", "async"],
)
def test_one_that_hangs_in_a_setup_ahead_of_its_turn(suite, timed, fixture):
    timed(
        f"""
        import asyncio
        import threading
        import pytest
        import timer

        @pytest.fixture
        {fixture}

        async def test_first(episode):
            await asyncio.sleep(0)

        async def test_second(blocks, episode): pass
        async def test_last(episode): pass
        """,
        ticks=1,
    )
    ran = suite.run_apart("--episode-concurrency=2", "--timeout=900")
    outcomes = {name: e.outcome for name, e in ran.episodes.items()}
    # The time of the first, which could not go on either, is over too.
    assert outcomes == {"test_first": "failed", "test_second": "error", "test_last": "passed"}
    assert "Timeout" in ran.episodes["test_second"].reason


def test_its_thread_method_tells_of_all_that_were_at_work(suite):
    suite.write(
        """
        import asyncio
        import pytest
        from conftest import all_are_at_work
        from meeting import meet

        @pytest.mark.parametrize("number", range(3))
        async def test_slow(episode, number):
            await meet(3)
            all_are_at_work.set()
            await asyncio.Event().wait()
        """,
        conftest="""
        import threading
        import pytest
        from pytest_timeout import timeout_timer

        all_are_at_work = threading.Event()

        @pytest.hookimpl(tryfirst=True)
        def pytest_timeout_set_timer(item, settings):
            # Ends in pytest-timeout's own way, once all are at work.
            def end():
                all_are_at_work.wait()
                timeout_timer(item, settings)

            item.cancel_timeout = lambda: None
            threading.Thread(target=end, daemon=True).start()
            return True
        """,
    )
    ran = suite.run_apart("--episode-concurrency=3", "--timeout=900", "--timeout-method=thread")
    assert ran.result.ret == 1
    assert [(line.event, line.episode.outcome) for line in ran.journal] == [
        ("started", "error")
    ] * 3
