"""Context variables that a function fixture sets are its test's, and no other's."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Ran
from tests.processes import run_python

HEAD = """
import asyncio
import contextvars
import pytest
import meeting

PARTIES = {parties}
who = contextvars.ContextVar("who", default="nobody")
run_wide = contextvars.ContextVar("run_wide", default="unset")

async def meet(parties, name=""):
    await meeting.meet(parties, __name__ + name)
"""


MODULES = {
    "a_fixture_s_variable_is_seen_in_its_test_and_reset_after_it": """
@pytest.fixture
def signed_in(request):
    assert who.get() == "nobody"
    token = who.set(request.node.name)
    yield
    assert who.get() == request.node.name
    who.reset(token)

@pytest.fixture
def after(signed_in, request):
    assert who.get() == request.node.name
    yield
    assert who.get() == request.node.name

@pytest.mark.parametrize("number", range(4))
async def test_meet(episode, after, request, number):
    assert who.get() == request.node.name
    await meet(PARTIES)
    assert who.get() == request.node.name
    assert await asyncio.to_thread(who.get) == request.node.name
    assert await asyncio.create_task(seen()) == request.node.name
    loop = asyncio.get_running_loop()
    assert await loop.run_in_executor(None, who.get) == request.node.name

async def seen(): return who.get()

async def test_other(episode): assert who.get() == "nobody"
def test_plain(): assert who.get() == "nobody"
""",
    "what_a_test_sets_is_seen_by_no_other_test": """
@pytest.mark.parametrize("number", range(4))
async def test_meet(episode, number):
    assert who.get() == "nobody"
    await meet(PARTIES)
    who.set(number)
    await meet(PARTIES, "again")
    assert who.get() == number

def test_plain(): assert who.get() == "nobody"
""",
    "a_wider_fixture_s_variable_is_seen_by_all_that_come_after_it": """
@pytest.fixture(scope="module", autouse=True)
def everywhere():
    token = run_wide.set("set")
    yield
    run_wide.reset(token)

@pytest.mark.parametrize("number", range(4))
async def test_meet(episode, number):
    await meet(PARTIES)
    assert run_wide.get() == "set"

def test_plain(episode): assert run_wide.get() == "set"
""",
    "one_that_an_item_ahead_sets_up_too": """
@pytest.fixture(scope="module")
def everywhere():
    token = run_wide.set("set")
    yield
    run_wide.reset(token)

@pytest.mark.parametrize("number", range(4))
async def test_before(episode, number): await meet(PARTIES)

@pytest.mark.parametrize("number", range(4))
async def test_meet(episode, everywhere, number):
    await meet(PARTIES, "again")
    assert run_wide.get() == "set"

def test_plain(everywhere): assert run_wide.get() == "set"
""",
    "setup_and_teardown_methods_share_it_with_their_test": """
class TestDesk:
    def setup_method(self): self.token = who.set("method")
    def teardown_method(self): who.reset(self.token)
    async def test_one(self, episode): assert who.get() == "method"
    async def test_two(self, episode): assert who.get() == "method"

async def test_other(episode): assert who.get() == "nobody"
""",
    "one_that_the_test_asks_for_late_is_torn_down_where_it_was_set_up": """
@pytest.fixture
def late(request):
    token = who.set("late " + request.node.name)
    yield
    if PARTIES > 1:  # one by one it is torn down outside of the test's task
        assert who.get() == "late " + request.node.name
        who.reset(token)

@pytest.mark.parametrize("number", range(4))
async def test_meet(episode, request, number):
    await meet(PARTIES)
    request.getfixturevalue("late")
    assert who.get() == "late " + request.node.name
""",
}


def test_a_variable_is_seen_where_it_was_set_for_and_reset_after_it(suite):
    for parties in (1, 4):
        head = HEAD.format(parties=parties)
        suite.pytester.makepyfile(**{f"test_{n}": head + tests for n, tests in MODULES.items()})
        ran = suite.run(f"--episode-concurrency={parties}", "-W", "error")
        ran.result.assert_outcomes(passed=32)
        assert all(e.outcome == "passed" for e in ran.results.episodes)


def test_checks_and_asserts_find_their_own_episode(suite):
    """What is asserted in a thread, in a task or in teardown belongs to the test."""
    suite.write("""
        import asyncio
        import pytest
        from meeting import meet
        from ci_agent_eval import check

        @pytest.fixture
        def desk(request):
            check(True, f"setup of {request.node.name}")
            yield
            check(True, f"teardown of {request.node.name}")

        @pytest.mark.parametrize("number", range(4))
        async def test_meet(episode, desk, request, number):
            name = request.node.name
            await meet(PARTIES)
            check(True, f"call of {name}")
            await asyncio.to_thread(check, True, f"thread of {name}")
            await asyncio.get_running_loop().run_in_executor(None, check, True, f"pool of {name}")
            async with asyncio.TaskGroup() as group:
                group.create_task(later(name))

        async def later(name):
            await asyncio.sleep(0)
            check(True, f"task of {name}")
    """)
    path = suite.pytester.path / "test_suite.py"
    text = path.read_text()
    seen = []
    for parties in (1, 4):
        path.write_text(text.replace("PARTIES", str(parties)))
        ran = suite.run(f"--episode-concurrency={parties}")
        ran.result.assert_outcomes(passed=4)
        for name, e in ran.episodes.items():
            assert all(a.name.endswith(f" of {name}") for a in e.assertions)
        seen.append((ran.folder / "results.json").read_bytes())
    assert seen[0] == seen[1]
    assert seen[0].count(b" of test_meet[2]") >= 5


def test_pytest_may_run_in_a_thread_of_its_own(suite):
    suite.write("""
        import pytest
        from ci_agent_eval import check
        from meeting import meet

        @pytest.mark.parametrize("number", range(3))
        async def test_meet(episode, number):
            await meet(3)
            check(True, f"number {number}")

        @pytest.fixture
        def desk(episode):
            check(True, "in setup")

        async def test_fixture(desk): pass
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
    done = run_python("-c", code, cwd=suite.pytester.path)
    assert done.returncode == 0, done.stdout
    ran = Ran(pytest.RunResult(0, [], [], 0), suite.pytester.path / "report")
    names = {name: [a.name for a in e.assertions] for name, e in ran.episodes.items()}
    assert names.pop("test_fixture") == ["in setup"]
    assert names == {f"test_meet[{n}]": [f"number {n}"] for n in range(3)}
