"""Plain episodes that are declared thread-safe run in threads, each in its own context."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import SCRIPTED_CLOCK
from tests.processes import run_python

MEET = """
import threading
import pytest
from meeting import Crowd, meet

crowd = Crowd()
{marks}
@pytest.mark.parametrize("number", range(3))
def test_meet(episode, number):
    with crowd.among():
        meet({parties})
    assert crowd.most == {parties}
    if {parties} > 1:
        assert threading.current_thread().name == f"test_suite.py::test_meet[{{number}}]"
    assert (threading.current_thread() is threading.main_thread()) == ({parties} == 1)
"""

NOTE = "note: 3 of the episodes run alone (3: its agent is not declared thread-safe)"


@pytest.mark.parametrize(
    ("setting", "marks", "parties"),
    [
        ("", "", 1),
        ("", "pytestmark = pytest.mark.episode(thread_safe=True)", 3),
        ("", "@pytest.mark.episode(thread_safe=True)", 3),
        ("episode_thread_safe = true", "", 3),
        ("episode_thread_safe = true", "@pytest.mark.episode(thread_safe=False)", 1),
    ],
)
def test_only_what_its_author_declares_runs_in_threads(plain_suite, setting, marks, parties):
    plain_suite.pytester.makeini(f"[pytest]\n{setting}")
    plain_suite.write(MEET.format(marks=marks, parties=parties))
    ran = plain_suite.run("--episode-concurrency=3")
    ran.result.assert_outcomes(passed=3)
    assert (NOTE in ran.result.outlines) == (parties == 1)


def test_a_value_that_is_neither_is_refused(plain_suite):
    plain_suite.write(MEET.format(marks="@pytest.mark.episode(thread_safe='yes')", parties=1))
    ran = plain_suite.run("--episode-concurrency=3")
    assert ran.result.ret != 0
    ran.result.stdout.fnmatch_lines(["*thread_safe: must be True or False (got 'yes')*"])


def test_async_and_plain_ones_run_together(suite):
    suite.write("""
        import asyncio
        import threading
        import pytest

        told = threading.Event()

        async def test_async(episode):
            while not told.is_set():
                await asyncio.sleep(0)

        @pytest.mark.episode(thread_safe=True)
        def test_plain(episode):
            told.set()
    """)
    suite.run_apart("--episode-concurrency=2").result.assert_outcomes(passed=2)


def test_a_context_variable_of_the_test_is_seen_by_its_teardown_alone(plain_suite):
    plain_suite.write("""
        from contextvars import ContextVar
        import pytest
        from meeting import meet

        who = ContextVar("who", default=None)

        @pytest.fixture
        def desk(request):
            who.set("setup")
            yield
            assert who.get() == request.node.name

        @pytest.mark.parametrize("number", range(3))
        def test_meet(episode, desk, number):
            assert who.get() == "setup"
            who.set(f"test_meet[{number}]")
            meet(3)
            assert who.get() == f"test_meet[{number}]"
    """)
    plain_suite.run("--episode-concurrency=3").result.assert_outcomes(passed=3)


ASKS = """
import pytest
from meeting import Crowd, let_others_work

crowd = Crowd()

@pytest.fixture
def late(): return "late"

@pytest.fixture
def ask(request):
    return lambda: request.getfixturevalue("late")

@pytest.mark.parametrize("number", range(2))
def test_asks(episode, {arguments}, number):
    with crowd.among():
        let_others_work()
    assert crowd.most == 1
    assert {call} == "late"
"""


def test_one_that_asks_for_fixtures_runs_alone(plain_suite):
    plain_suite.write(ASKS.format(arguments="request", call="request.getfixturevalue('late')"))
    ran = plain_suite.run("--episode-concurrency=2")
    ran.result.assert_outcomes(passed=2)
    reason = "its argument `request` can set fixtures up while it runs"
    ran.result.stdout.fnmatch_lines([f"note: 2 of the episodes run alone (2: {reason})"])


def test_a_fixture_that_is_asked_for_in_a_thread_is_refused(plain_suite):
    plain_suite.write(ASKS.format(arguments="ask", call="ask()").replace("assert crowd", "crowd"))
    ran = plain_suite.run("--episode-concurrency=2")
    ran.result.assert_outcomes(failed=2)
    assert {e.outcome for e in ran.episodes.values()} == {"error"}
    assert (
        "test_suite.py::test_asks[0]: the fixture 'late' was asked for while the test runs in a "
        "thread; name it as a parameter of the test"
    ) in ran.episodes["test_asks[0]"].reason


@pytest.mark.parametrize("kind", ["async def", "def"])
def test_a_patched_test_runs_alone(suite, kind):
    suite.write(f"""
        import os
        from unittest import mock
        import pytest

        pytestmark = pytest.mark.episode(thread_safe=True)

        @mock.patch("os.getlogin", return_value="me")
        {kind} test_patched(getlogin, episode):
            assert os.getlogin() == "me"
    """)
    ran = suite.run("--episode-concurrency=2")
    ran.result.assert_outcomes(passed=1)
    reason = "`unittest.mock.patch` changes the whole process"
    ran.result.stdout.fnmatch_lines([f"note: 1 of the episodes run alone (1: {reason})"])


def test_plain_conversations_drive_async_agents_on_the_loop_of_all(plain_suite):
    """Each agent has its own task for all its calls; all tasks are on one loop."""
    plain_suite.pytester.makeconftest(SCRIPTED_CLOCK)
    plain_suite.pytester.makepyfile(
        test_suite="""
        import asyncio
        import pytest
        from ci_agent_eval import conversation

        loops, meetings, closed = set(), {}, []

        class Desk:
            async def __aenter__(self):
                self.task = asyncio.current_task()
                loops.add(asyncio.get_running_loop())

            async def __aexit__(self, *_):
                assert self.task is asyncio.current_task()
                await asyncio.sleep(0)
                closed.append(self)

            async def respond(self, message):
                assert self.task is asyncio.current_task()
                async with asyncio.timeout(600):
                    await meetings.setdefault(message, asyncio.Barrier(PARTIES)).wait()
                return message.upper()

        PARTIES = 3

        @pytest.mark.parametrize("number", range(3))
        @conversation("Greets", Desk)
        def test_talk(agent, number):
            assert agent.send("hi") == "HI"
            assert agent.send("bye") == "BYE"

        def test_told():
            assert (len(loops), len(closed)) == (1, 3)
        """
    )
    plain_suite.run("--episode-concurrency=3").result.assert_outcomes(passed=4)


def test_ctrl_c_lets_the_agent_of_a_plain_conversation_clean_up(plain_suite):
    plain_suite.pytester.makepyfile(
        test_suite="""
        import asyncio
        import os
        import pytest
        from pathlib import Path
        from ci_agent_eval import conversation

        waiting = []

        class Desk:
            async def respond(self, message):
                waiting.append(self)
                if len(waiting) == 2:
                    os.kill(os.getpid(), 2)
                try:
                    await asyncio.Event().wait()
                finally:
                    await asyncio.sleep(0)
                    waiting.remove(self)

            async def aclose(self):
                await asyncio.sleep(0)
                assert self not in waiting
                with Path("told.txt").open("a") as file:
                    file.write("closed\\n")

        @pytest.mark.parametrize("number", range(2))
        @conversation("Greets", Desk)
        def test_talk(agent, number):
            agent.send("hi")
        """
    )
    ran = plain_suite.run_apart("--episode-concurrency=2")
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    told = (plain_suite.pytester.path / "told.txt").read_text().split()
    assert told == ["closed", "closed"]
    assert {e.reason for e in ran.episodes.values()} == {"interrupted: KeyboardInterrupt"}


def test_pytest_may_run_in_a_thread_of_its_own(plain_suite):
    plain_suite.write("""
        import pytest
        from ci_agent_eval import check
        from meeting import meet

        @pytest.mark.parametrize("number", range(3))
        def test_meet(episode, number):
            meet(3)
            check(True, f"number {number}")

        @pytest.fixture
        def desk(episode):
            check(True, "in setup")

        def test_fixture(desk): pass
    """)
    code = """
import sys, threading, pytest
status = []
options = ["--episode-report-dir=report", "--episode-concurrency=3"]
thread = threading.Thread(target=lambda: status.append(pytest.main(options)))
thread.start()
thread.join()
sys.exit(status[0])
"""
    done = run_python("-c", code, cwd=plain_suite.pytester.path)
    assert done.returncode == 0, done.stdout
    from tests.plugin.conftest import Ran

    ran = Ran(pytest.RunResult(0, [], [], 0), plain_suite.pytester.path / "report")
    names = {name: [a.name for a in e.assertions] for name, e in ran.episodes.items()}
    assert names.pop("test_fixture") == ["in setup"]
    assert names == {f"test_meet[{n}]": [f"number {n}"] for n in range(3)}


def test_a_check_of_a_bare_thread_during_the_setup_ahead_is_in_no_episode(any_suite):
    any_suite.write("""
        import threading
        import pytest
        from ci_agent_eval import check
        from meeting import meet

        errors = []

        def judge():
            try:
                check(False, "in a thread")
            except AssertionError as error:
                errors.append(error)

        @pytest.fixture
        def desk():
            thread = threading.Thread(target=judge)
            thread.start()
            thread.join()

        async def test_first(episode):
            await meet(2)

        async def test_second(episode, desk):
            await meet(2)
    """)
    ran = any_suite.run("--episode-concurrency=2")
    ran.result.assert_outcomes(passed=2)
    assert [e.assertions for e in ran.results.episodes] == [(), ()]
