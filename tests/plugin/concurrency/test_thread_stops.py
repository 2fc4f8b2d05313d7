"""A plain episode in a thread is cancelled like an async one, or left behind."""

from __future__ import annotations

import json
import signal

import pytest

from ci_agent_eval.pytest_plugin.concurrency import session_loop
from ci_agent_eval.runner.suite import GRACE_SECONDS
from tests.plugin.concurrency.test_signals import FIXTURES, ended, left
from tests.plugin.concurrency.test_stops import CUT, INTERRUPTIONS
from tests.plugin.conftest import SCRIPTED_CLOCK
from tests.processes import started_python, wait_for

HEAD = (
    """
import os
import threading
import time
import pytest
from pathlib import Path
from meeting import meet

"""
    + FIXTURES
    + """
def work():
    while True:
        time.sleep(0)
"""
)

STOP = (
    HEAD
    + """
def test_one(episode, desk): pass

def test_two(episode, desk):
    with episode.turn("Hello") as turn:
        turn.tool_call("lookup")
    meet(4)
    {how}

@pytest.mark.parametrize("number", range(4))
def test_three(episode, desk, number):
    with episode.turn(f"Hello {{number}}") as turn:
        turn.tool_call("lookup")
    try:
        if number < 3:
            meet(4)
        work()
    finally:
        tell("cleaned", number)
"""
)

QUICK = """
from ci_agent_eval.pytest_plugin.concurrency import session_loop

session_loop.CLEAN_UP_S = 0.5
"""
"""A conftest with which a thread is left behind after half a second in place of a minute."""


LOST = "its thread did not end within 0.5 s"


def read(suite):
    return (suite.pytester.path / "told.txt").read_text().splitlines()


def assert_cut_off(ran, told, reason):
    for number in range(3):
        three = ran.episodes[f"test_three[{number}]"]
        assert three.outcome == "error"
        assert three.reason.startswith(reason), three.reason
        assert "thread" not in three.reason
        assert [call.name for call in three.trajectory.tool_calls()] == ["lookup"]
        assert told.count(f"cleaned {number}") == 1
    assert "test_three[3]" not in ran.episodes
    for line in [line for line in told if line.startswith("up ")]:
        assert told.count(line) == told.count(line.replace("up ", "down ")) == 1
    assert told[-1] == "down floor"


@pytest.mark.parametrize("option", ["-x", "--maxfail=1", "--stepwise"])
def test_the_first_failure_stops_it(plain_suite, option):
    plain_suite.write(STOP.format(how="assert False"))
    ran = plain_suite.run_apart("--episode-concurrency=4", option)
    assert ran.episodes["test_two"].outcome == "failed"
    assert_cut_off(ran, read(plain_suite), CUT)


@pytest.mark.parametrize(("how", "reason"), INTERRUPTIONS, ids=["exit", "raised", "signal"])
def test_an_interruption_stops_it(plain_suite, how, reason):
    plain_suite.write(STOP.format(how=how + "\n    work()"))
    ran = plain_suite.run_apart("--episode-concurrency=4")
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    assert (ran.session.state, ran.session.exit_status) == ("interrupted", 2)
    two = ran.episodes["test_two"]
    assert (two.outcome, two.reason) == ("error", reason)
    assert_cut_off(ran, read(plain_suite), reason)


@pytest.mark.parametrize(
    "how",
    [
        "raise SystemExit(3)",
        "raise StopIteration",
        "raise __import__('asyncio').CancelledError",
        "raise GeneratorExit",
    ],
)
def test_an_exception_that_a_task_cannot_raise_is_its_own_failure(plain_suite, how):
    seen = []
    for concurrency in (1, 4):
        plain_suite.write(f"""
            import pytest
            from meeting import meet

            @pytest.mark.parametrize("number", range(4))
            def test_meet(episode, number):
                meet({concurrency})
                if number == 2:
                    {how}
        """)
        ran = plain_suite.run_apart(f"--episode-concurrency={concurrency}")
        ran.result.assert_outcomes(passed=3, failed=1)
        seen.append((ran.episodes["test_meet[2]"].outcome, ran.episodes["test_meet[2]"].reason))
    assert seen[0] == seen[1]


BLOCKS = "threading.Event().wait()"


@pytest.mark.parametrize(
    ("ending", "lost"), [("pass", ""), (BLOCKS, f"; {LOST}")], ids=["ends", "blocks"]
)
def test_a_budget_of_the_suite_ends_them(plain_suite, ending, lost):
    plain_suite.write(
        HEAD
        + f"""
@pytest.mark.parametrize("number", range(8))
def test_spend(episode, desk, number):
    try:
        meet(4)
        if number == 2:
            with episode.turn("Hello") as turn:
                turn.reply("Hi", cost_usd=5)
        work()
    finally:
        {ending}
""",
        SCRIPTED_CLOCK + (QUICK if lost else ""),
    )
    ran = plain_suite.run_apart("--episode-concurrency=4", "--total-cost-usd=1")
    outcomes = {name: e.outcome for name, e in ran.episodes.items()}
    names = [f"test_spend[{number}]" for number in range(4)]
    assert outcomes == dict.fromkeys(names, "error")
    reason = f"stopped: suite budget total_cost_usd exceeded: $5.00 of $1.00{lost}"
    assert {e.reason for e in ran.episodes.values()} == {reason}
    told = read(plain_suite)
    assert [told.count(f"down {name}") for name in names] == [1, 1, 1, 1]


@pytest.mark.parametrize("body", ["work()", BLOCKS], ids=["works", "blocks"])
def test_a_timeout_ends_only_the_current_one(plain_suite, body):
    plain_suite.write(
        HEAD
        + f"""
done = threading.Event()

@pytest.fixture
def ends():
    yield
    done.set()

@pytest.mark.timeout(1)
def test_slow(episode, desk, ends):
    meet(2)
    {body}

def test_other(episode, desk):
    meet(2)
    assert done.wait(600)
""",
        SCRIPTED_CLOCK + (QUICK if body == BLOCKS else ""),
    )
    ran = plain_suite.run_apart("--episode-concurrency=2", "-p", "timeout")
    ran.result.assert_outcomes(passed=1, failed=1)
    assert ran.episodes["test_slow"].reason.startswith("Timeout")


FOUR = (
    HEAD
    + """
@pytest.mark.parametrize("number", range(4))
def test_work(episode, desk, number):
"""
)

WORKING = (
    FOUR
    + """
    with episode.turn("Hello") as turn:
        turn.tool_call("lookup")
    try:
        meet(4)
        if number == 1:
            os.write(1, b"\\nall are at work\\n")
        BODY
    finally:
        tell("cleaned", number)
"""
)


def interrupt(suite, tests):
    """Run the suite, press Ctrl-C once all are at work, and return what is left."""
    suite.write(tests)
    arguments = ("-m", "pytest", "-s", "--episode-report-dir=report", "--episode-concurrency=4")
    with started_python(*arguments, cwd=suite.pytester.path) as process:
        wait_for(process, "all are at work")
        process.send_signal(signal.SIGINT)
        assert ended(process) == pytest.ExitCode.INTERRUPTED
    return left(suite)


WAITS = [
    """class Slow:
            def __del__(self): time.sleep(0.01)
        while True:
            Slow()
            time.sleep(0.01)""",
    "work()",
    "import queue\n        while True:\n            threading.Event().wait(0.001)",
    "import logging\n        while True:\n            logging.getLogger('desk').warning('x')",
    "while True:\n            episode.tool_calls",
    "from asyncio import Event, run\n        run(Event().wait())",
]


@pytest.mark.parametrize("body", WAITS, ids=["del", "sleep", "event", "log", "recorder", "loop"])
def test_ctrl_c(plain_suite, body):
    ran = interrupt(plain_suite, WORKING.replace("BODY", body))
    for number in range(4):
        cut_off = ran.episodes[f"test_work[{number}]"]
        assert (cut_off.outcome, cut_off.reason) == ("error", "interrupted: KeyboardInterrupt")
        assert [call.name for call in cut_off.trajectory.tool_calls()] == ["lookup"]
    told = read(plain_suite)
    assert [told.count(f"cleaned {number}") for number in range(4)] == [1] * 4
    assert [told.count(f"down test_work[{number}]") for number in range(4)] == [1] * 4
    assert told[-1] == "down floor"


OWN_LOOP = """
import asyncio
import os
from meeting import meet

async def wait(number):
    meet(4)
    if number == 1:
        os.write(1, b"\\nall are at work\\n")
    await asyncio.Event().wait()

def wait_on_own_loop(number):
    asyncio.run(wait(number))
"""

LEAVES_ITS_LOOP = (
    FOUR
    + """
    from own_loop import wait_on_own_loop

    try:
        wait_on_own_loop(number)
    finally:
        threading.Event().wait(0.1)
        tell("cleaned", number)
"""
)


def test_a_thread_whose_task_was_cancelled_is_not_interrupted_again(plain_suite):
    plain_suite.pytester.makepyfile(own_loop=OWN_LOOP)
    interrupt(plain_suite, LEAVES_ITS_LOOP)
    told = read(plain_suite)
    assert [told.count(f"cleaned {number}") for number in range(4)] == [1] * 4


NEVER = (
    FOUR
    + """
    try:
        meet(4)
        if number == 1:
            os.write(5, b"\\nall are at work\\n")
        work()
    except BaseException:
        pass
    while True:
        print("still here", flush=True)
        __import__("logging").getLogger("desk").warning("still here")
        WAIT
"""
)


def interrupt_suite(suite, tests, conftest, options):
    """Run the suite, press Ctrl-C once all are at work, and return its output."""
    # pytest captures descriptor 1; another one still leads to us.
    suite.write(tests, conftest)
    arguments = [*options, "--episode-report-dir=report", "--episode-concurrency=4"]
    code = f"import os, sys, pytest; os.dup2(1, 5); sys.exit(pytest.main({arguments!r}))"
    with started_python("-c", code, cwd=suite.pytester.path) as process:
        wait_for(process, "all are at work")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=600)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    return output


def assert_left_behind(ran, lost):
    assert set(ran.episodes) == {f"test_work[{number}]" for number in range(4)}
    reasons = {e.reason for e in ran.episodes.values()}
    assert reasons == {f"interrupted: KeyboardInterrupt; {lost}"}


@pytest.mark.parametrize("options", [("-s",), ("-p", "no:capture"), ("--capture=sys",), ("-q",)])
def test_threads_that_never_end_are_left_behind(plain_suite, options):
    """They print until the very end of the process, which they neither stop nor break."""
    tests = NEVER.replace("WAIT", "pass")
    output = interrupt_suite(plain_suite, tests, SCRIPTED_CLOCK + QUICK, options)
    assert "Fatal" not in output
    assert "still here" not in output.rpartition("= episodes =")[2]
    assert_left_behind(left(plain_suite), LOST)
    told = read(plain_suite)
    assert [told.count(f"down test_work[{number}]") for number in range(4)] == [1] * 4


def test_agent_eval_run_leaves_them_behind_before_it_kills_pytest(plain_suite):
    tests = NEVER.replace("WAIT", BLOCKS)
    interrupt_suite(plain_suite, tests, SCRIPTED_CLOCK, ["--episode-watched"])
    assert_left_behind(left(plain_suite), "its thread did not end within 5 s")
    assert session_loop.WATCHED_CLEAN_UP_S < GRACE_SECONDS


IN_TEARDOWN = (
    HEAD
    + """
@pytest.fixture
def slow_to_close():
    yield
    os.write(5, b"\\nall are at work\\n")
    threading.Event().wait(600)

def test_first(episode, slow_to_close):
    meet(4)

@pytest.mark.parametrize("number", range(3))
def test_work(episode, desk, number):
    is_first = True
    while True:
        try:
            if is_first:
                is_first = False
                meet(4)
            threading.Event().wait()
        except BaseException:
            print("cleaning up")
"""
)


def test_ctrl_c_in_a_teardown_ends_those_that_run_ahead_as_well(plain_suite):
    interrupt_suite(plain_suite, IN_TEARDOWN, SCRIPTED_CLOCK, ["--episode-watched"])
    ran = left(plain_suite)
    lost = "its thread did not end within 5 s"
    reason = f"interrupted: KeyboardInterrupt; {lost}"
    assert {name: e.reason for name, e in ran.episodes.items() if name != "test_first"} == {
        f"test_work[{number}]": reason for number in range(3)
    }
    told = read(plain_suite)
    assert [told.count(f"down test_work[{number}]") for number in range(3)] == [1] * 3


LEFT_BEHIND = """
import json
import threading
import pytest
from ci_agent_eval import check
from gates import told, released, tried
from meeting import meet

@pytest.fixture
def desk(episode):
    print("opened")
    yield
    check(True, "in teardown")
    print("closed")

def test_fails(episode):
    meet(2)
    assert False

def ask():
    import httpx
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hi"}]}
    return httpx.post("https://api.openai.com/v1/chat/completions", json=body).json()["error"]

def test_blocks(episode, desk):
    IMPORTS
    with episode.turn("Hello") as turn:
        meet(2)
        try:
            released.wait(600)
        except BaseException:
            pass
        told.append(ask()["message"])
        for act in (
            lambda: episode.check("late", True),
            lambda: episode.score("late", 1.0),
            lambda: check(True, "late"),
            lambda: turn.tool_call("late"),
            lambda: episode.turn("late"),
            lambda: episode.budget("late", limit=1, used=2),
        ):
            try:
                act()
                told.append("recorded")
            except BaseException as error:
                told.append(type(error).__name__)
        print("late text")
        __import__("logging").getLogger().error("late record")
        __import__("warnings").warn("late warning")
        tried.set()
"""

GATES = """
import threading

told, released, tried = [], threading.Event(), threading.Event()
"""

RELEASES = """
import json
import pytest
from gates import told, released, tried

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    released.set()
    assert tried.wait(600)
    (session.config.rootpath / "told.json").write_text(json.dumps(told))
"""


@pytest.mark.parametrize("imports", ["pass", "import httpx"])
@pytest.mark.parametrize("options", [(), ("-s", "-rA", "--log-cli-level=INFO")], ids=str)
def test_a_thread_that_is_left_behind_records_nothing_more(plain_suite, imports, options):
    plain_suite.pytester.makepyfile(gates=GATES)
    conftest = SCRIPTED_CLOCK + QUICK + RELEASES
    plain_suite.write(LEFT_BEHIND.replace("IMPORTS", imports), conftest)
    ran = plain_suite.run_apart("--episode-concurrency=2", "-x", *options)
    blocks = ran.episodes["test_blocks"]
    assert (blocks.outcome, blocks.reason) == (
        "error",
        f"{CUT} (stopping after 1 failures); {LOST}",
    )
    assert [turn.content for turn in blocks.trajectory.turns] == ["Hello"]
    assert [a.name for a in blocks.assertions] == ["in teardown"]
    first, *others = json.loads((plain_suite.pytester.path / "told.json").read_text())
    assert first == "refused by ci_agent_eval: the run has stopped this episode"
    assert others == ["EpisodeCancelledError"] * 6
    assert "late" not in ran.result.stdout.str() + ran.result.stderr.str()
