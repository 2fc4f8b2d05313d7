"""A run that is to stop cancels what runs, and records it; nothing hangs, and nothing is lost."""

from __future__ import annotations

import pytest

STOP = """
import asyncio
import pytest
from pathlib import Path
from meeting import meet

PARTIES = {parties}

def tell(*words):
    with Path("told.txt").open("a") as file:
        print(*words, file=file)

@pytest.fixture
def desk(request):
    tell("up", request.node.name)
    yield
    tell("down", request.node.name)

@pytest.fixture(scope="module")
def floor():
    tell("up floor")
    yield
    tell("down floor")

async def test_one(episode, desk, floor): pass

async def test_two(episode, desk, floor):
    with episode.turn("Hello") as turn:
        turn.tool_call("lookup")
    await meet(PARTIES)
    {how}

@pytest.mark.parametrize("number", range(4))
async def test_three(episode, desk, floor, number):
    with episode.turn(f"Hello {{number}}") as turn:
        turn.tool_call("lookup")
    try:
        if number < PARTIES - 1:
            await meet(PARTIES)
        if PARTIES > 1:
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        tell("cancelled", number)
        await asyncio.sleep(0)
        raise
    finally:
        tell("cleaned", number)
"""


def run(suite, how, *arguments, parties=4):
    suite.write(STOP.format(how=how, parties=parties))
    # pytester raises an inner run's KeyboardInterrupt again.
    run_suite = suite.run if arguments else suite.run_apart
    ran = run_suite(f"--episode-concurrency={parties}", *arguments)
    told = (suite.pytester.path / "told.txt").read_text().splitlines()
    return ran, told


CUT = "cancelled: the run stopped before its turn"


def assert_cut_off(ran, told, reason, parties=4):
    """The three that ran beside it were cancelled, and there is what they did until then."""
    for number in range(parties - 1):
        three = ran.episodes[f"test_three[{number}]"]
        assert three.outcome == "error"
        assert three.reason.startswith(reason), three.reason
        assert three.trajectory is not None
        assert [call.name for call in three.trajectory.tool_calls()] == ["lookup"]
        assert told.count(f"cancelled {number}") == told.count(f"cleaned {number}") == 1
    assert "test_three[3]" not in ran.episodes
    for line in [line for line in told if line.startswith("up ")]:
        assert told.count(line) == told.count(line.replace("up ", "down ")) == 1
    assert told[-1] == "down floor"


def test_the_first_failure_stops_it(suite):
    ran, told = run(suite, "assert False", "-x")
    ran.result.assert_outcomes(passed=1, failed=1)
    assert ran.result.ret == pytest.ExitCode.TESTS_FAILED
    assert ran.episodes["test_two"].outcome == "failed"
    assert_cut_off(ran, told, CUT)
    # The rest of the run says what one by one it would say.
    ran.result.stdout.fnmatch_lines(["!* stopping after 1 failures !*"])
    assert ran.session.selected == 6


def test_a_broken_setup_stops_it_too(suite):
    suite.write("""
        import pytest

        @pytest.fixture
        def broken(): raise OSError("no desk")

        async def test_one(episode): pass
        async def test_two(episode, broken): pass
        async def test_three(episode): pass
    """)
    seen = []
    for concurrency in (1, 8):
        ran = suite.run(f"--episode-concurrency={concurrency}", "-x")
        ran.result.assert_outcomes(passed=1, errors=1)
        seen.append((ran.result.ret, {n: e.outcome for n, e in ran.episodes.items()}))
    assert seen[0][0] == seen[1][0]
    # What had run to its end before its turn came has no report to stand for it.
    assert seen[1][1] == {**seen[0][1], "test_three": "error"}


def test_maxfail_counts_reports(suite):
    suite.write("""
        import pytest

        @pytest.mark.parametrize("number", range(9))
        async def test_fails(episode, number): assert number % 2
    """)
    for concurrency in (1, 8):
        ran = suite.run(f"--episode-concurrency={concurrency}", "--maxfail=3")
        ran.result.assert_outcomes(passed=2, failed=3)


INTERRUPTIONS = [
    ("pytest.exit('enough')", "interrupted: Exit"),
    ("raise KeyboardInterrupt", "interrupted: KeyboardInterrupt"),
]


@pytest.mark.parametrize(("how", "reason"), INTERRUPTIONS, ids=["exit", "raised"])
def test_an_interruption_stops_it(suite, how, reason):
    ran, told = run(suite, how + "\n    await asyncio.sleep(0)")
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    assert (ran.session.state, ran.session.exit_status) == ("interrupted", 2)
    two = ran.episodes["test_two"]
    assert (two.outcome, two.reason) == ("error", reason)
    assert two.trajectory is not None
    assert_cut_off(ran, told, reason)
    assert ran.episodes["test_one"].outcome == "passed"
    ran.result.stdout.fnmatch_lines([f"ERROR  test_suite.py::test_three[[]0]: {reason}"])


def test_one_that_is_ahead_of_its_turn_interrupts_the_run(suite):
    suite.write("""
        import asyncio
        import pytest
        from meeting import meet

        async def test_slow(episode):
            with episode.turn("Hello") as turn:
                turn.tool_call("lookup")
            if {concurrency} > 1:
                await meet(2)
                await asyncio.Event().wait()

        async def test_ends_it(episode):
            if {concurrency} > 1:
                await meet(2)
            pytest.exit("enough", returncode=7)
    """)
    path = suite.pytester.path / "test_suite.py"
    text = path.read_text()
    status = set()
    for concurrency in (1, 2):
        path.write_text(text.replace("{concurrency}", str(concurrency)))
        ran = suite.run(f"--episode-concurrency={concurrency}")
        status.add((ran.result.ret, ran.session.state, ran.session.exit_status))
        assert ran.episodes["test_ends_it"].reason.startswith("interrupted: ")
    assert len(status) == 1
    slow = ran.episodes["test_slow"]
    assert slow.outcome == "error"
    assert slow.trajectory is not None


def test_an_exit_cancellation_or_timeout_of_one_is_its_failure_alone(suite):
    suite.write("""
        import asyncio
        import sys
        import pytest
        from meeting import meet

        @pytest.mark.parametrize("number", range(5))
        async def test_meet(episode, number):
            if {concurrency} > 1:
                await meet(5)
            if number == 1:
                raise SystemExit(3)
            if number == 2:
                sys.exit("gone")
            if number == 3:
                asyncio.current_task().cancel()
            async with asyncio.timeout(0.01 if number == 4 else None):
                await (asyncio.Event().wait() if number == 4 else asyncio.sleep(0))
    """)
    path = suite.pytester.path / "test_suite.py"
    text = path.read_text()
    seen = []
    for concurrency in (1, 5):
        path.write_text(text.replace("{concurrency}", str(concurrency)))
        ran = suite.run(f"--episode-concurrency={concurrency}")
        ran.result.assert_outcomes(passed=1, failed=4)
        seen.append({name: (e.outcome, e.reason) for name, e in ran.episodes.items()})
    assert seen[0] == seen[1]
    assert seen[1]["test_meet[4]"][0] == "error"


def test_stepwise_stops_too(suite):
    ran, told = run(suite, "assert False", "--stepwise")
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    assert_cut_off(ran, told, CUT)
