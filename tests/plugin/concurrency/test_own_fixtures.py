"""Contexts and own fixtures of concurrent episodes."""

from __future__ import annotations

import pytest

from tests.plugin.concurrency.conftest import MEETING
from tests.plugin.conftest import SCRIPTED_CLOCK, Ran
from tests.processes import run_python

# Fixtures of function scope belong to their own episode, and are torn down in its teardown.


HEAD = """
import asyncio
import pytest
import meeting

told = []

async def meet(parties):
    if meeting.CONCURRENT:
        await meeting.meet(parties, __name__)
"""

TOLD = """
def test_told():
    expected = []
    for name in "{names}".split():
        expected += [f"up {{name}}", f"down {{name}}"]
    assert sorted(told) == sorted(expected)
    downs = [entry for entry in told if entry.startswith("down")]
    assert downs == [entry for entry in expected if entry.startswith("down")]
"""


def run(suite, tests, conftest=SCRIPTED_CLOCK, arguments=(), **outcomes):
    """Run at both: the same has to hold for episodes one by one, where they need not meet."""
    suite.write(HEAD + tests, conftest=conftest)
    for concurrency in (1, 8):
        suite.pytester.makepyfile(meeting=f"CONCURRENT = {concurrency > 1}\n{MEETING}")
        ran = suite.run(f"--episode-concurrency={concurrency}", *arguments)
        ran.result.assert_outcomes(**outcomes)
    return ran


MODULES = {
    "each_has_its_own_value_until_its_own_teardown": """
@pytest.fixture
def desk(request):
    mine = {"of": request.node.name}
    told.append("up " + request.node.name)
    yield mine
    told.append("down " + request.node.name)
    assert mine == {"of": request.node.name, "seen": True}

@pytest.mark.parametrize("number", range(4))
async def test_meet(episode, desk, number, request):
    assert desk == {"of": request.node.name}
    desk["seen"] = True
    await meet(4)
    assert "down " + request.node.name not in told
"""
    + TOLD.format(names=" ".join(f"test_meet[{n}]" for n in range(4))),
    "those_that_fixtures_ask_for_too": """
@pytest.fixture
def room(): return []

@pytest.fixture
def desk(room):
    room.append("desk")
    return room

@pytest.fixture(autouse=True)
def lamp(room): room.append("lamp")

@pytest.fixture
def chair(room): room.append("chair")

@pytest.mark.usefixtures("chair")
@pytest.mark.parametrize("number", range(4))
async def test_meet(desk, room, episode, number):
    assert desk is room
    assert sorted(room) == ["chair", "desk", "lamp"]
    await meet(4)
    assert len(room) == 3
""",
    "one_that_is_asked_for_while_the_test_runs": """
@pytest.fixture
def desk(request):
    told.append("up " + request.node.name)
    yield [request.node.name]
    told.append("down " + request.node.name)

@pytest.fixture
def indirectly(request):
    return request.getfixturevalue("desk")

@pytest.mark.parametrize("number", range(4))
async def test_meet(episode, request, number):
    await meet(4)
    found = request.getfixturevalue("indirectly")
    assert found == [request.node.name]
    await meet(4)
    assert request.getfixturevalue("desk") is found
    assert "down " + request.node.name not in told
"""
    + TOLD.format(names=" ".join(f"test_meet[{n}]" for n in range(4))),
    "one_that_an_async_test_asks_for_in_a_thread": """
import asyncio

@pytest.fixture
def desk(request):
    return request.node.name

@pytest.mark.parametrize("number", range(2))
async def test_meet(episode, request, number):
    await meet(2)
    assert await asyncio.to_thread(request.getfixturevalue, "desk") == request.node.name
""",
    "one_that_overrides_its_own_name": """
@pytest.fixture
def desk(desk): return [*desk, "module"]

class TestDesk:
    @pytest.fixture
    def desk(self, desk): return [*desk, "class"]

    @pytest.mark.parametrize("number", range(3))
    async def test_meet(self, episode, desk, number, request):
        await meet(4)
        assert desk == ["conftest", request.node.name, "module", "class"]

    async def test_late(self, episode, request):
        await meet(4)
        assert request.getfixturevalue("desk") == ["conftest", "test_late", "module", "class"]
""",
    "parametrized_ones_direct_and_indirect": """
@pytest.fixture(params=["gold", "basic"])
def tier(request): return [request.param]

@pytest.fixture
def desk(request): return [request.param]

@pytest.mark.parametrize("desk", ["left", "right"], indirect=True)
async def test_meet(episode, tier, desk, request):
    await meet(4)
    assert request.node.callspec.params == {"tier": tier[0], "desk": desk[0]}
""",
    "an_instance_and_its_setup_method": """
class TestDesk:
    def setup_method(self, method):
        self.number = [method.__name__]
        told.append("up " + method.__name__)

    def teardown_method(self, method):
        assert self.number == [method.__name__, "seen"]
        told.append("down " + method.__name__)

    @pytest.fixture(autouse=True)
    def bound(self): self.bound = id(self)

    async def test_one(self, episode):
        await meet(2)
        assert self.number == ["test_one"]
        assert self.bound == id(self)
        self.number.append("seen")

    async def test_two(self, episode):
        await meet(2)
        assert self.number == ["test_two"]
        assert self.bound == id(self)
        self.number.append("seen")

def setup_function(function): told.append("up " + function.__name__)
def teardown_function(function): told.append("down " + function.__name__)

async def test_three(episode): assert told.count("up test_three") == 1
def test_four(): pass
"""
    + TOLD.format(names="test_one test_two test_three test_four").replace(
        "def test_told():", "def test_told():\n    told.pop()"
    ),
    "its_folder": """
@pytest.mark.parametrize("number", range(4))
async def test_meet(episode, tmp_path, number, request):
    (tmp_path / "number").write_text(str(number))
    await meet(4)
    assert [path.read_text() for path in tmp_path.iterdir()] == [str(number)]
    assert request.getfixturevalue("tmp_path") == tmp_path
""",
    "what_the_request_knows_of_the_test": """
@pytest.fixture
def desk(request):
    request.addfinalizer(lambda: told.append("down " + request.node.name))
    told.append("up " + request.node.name)
    return request.function.__name__, request.node.name, request.instance, request.param_index

@pytest.mark.parametrize("number", range(3))
async def test_meet(episode, desk, request, number):
    await meet(3)
    assert desk[:2] == ("test_meet", request.node.name)
    request.addfinalizer(lambda: told.append("late"))
    request.node.user_properties.append(("number", number))

def test_late():
    assert told.count("late") == 3
    told[:] = [entry for entry in told if entry != "late"]
"""
    + TOLD.format(names=" ".join(f"test_meet[{n}]" for n in range(3))),
    "a_fixture_of_a_value_that_a_wider_parametrization_gives_is_shared": """
@pytest.fixture
def desk(request): return []

@pytest.mark.parametrize("desk", ["left", "right"], indirect=True, scope="module")
class TestDesk:
    async def test_one(self, episode, desk): desk.append(1)
    async def test_two(self, episode, desk): assert desk == [1]
""",
}

SHARED = (
    SCRIPTED_CLOCK
    + """
@pytest.fixture
def desk(request): return ["conftest", request.node.name]
"""
)


def test_each_kind_of_fixture_is_its_episode_s_own(suite):
    files = {f"test_{name}": HEAD + tests for name, tests in MODULES.items()}
    suite.pytester.makepyfile(**files)
    ran = run(suite, "", SHARED, passed=42)
    for number in range(3):
        # pytest writes a test's own properties beside ours.
        assert f'name="number" value="{number}"' in (ran.folder / "junit.xml").read_text()


def test_the_same_file_twice_has_two_sets_of_them(suite):
    tests = """
@pytest.fixture
def desk(): return []

async def test_meet(episode, desk):
    await meet(2)
    desk.append(1)
    assert desk == [1]
"""
    arguments = ("--keep-duplicates", "test_suite.py", "test_suite.py")
    ran = run(suite, tests, arguments=arguments, passed=2)
    assert [e.iteration for e in ran.results.episodes] == [1, 2]


# Context variables that a function fixture sets are its test's, and no other's.


HEAD_CONTEXTS = """
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


MODULES_CONTEXTS = {
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
        head = HEAD_CONTEXTS.format(parties=parties)
        suite.pytester.makepyfile(
            **{f"test_{n}": head + tests for n, tests in MODULES_CONTEXTS.items()}
        )
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
