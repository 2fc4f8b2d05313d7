"""Async fixtures of every scope live on the loop of the episodes, beside every async plugin."""

from __future__ import annotations

import pytest

from tests.compat.conftest import IS_OLD_ASYNCIO as IS_OLD

ASYNCIO = "pytest_asyncio.plugin"

SUITE = """
import asyncio
import pytest
IMPORTS

MARK = DECORATOR
told = []

def loop(): return asyncio.get_running_loop()

def of(scope):
    @FIXTURE(scope=scope)
    async def coroutine():
        await asyncio.sleep(0)
        return loop()

    @FIXTURE(scope=scope)
    async def generator():
        mine = loop()
        async with asyncio.timeout(120), asyncio.TaskGroup():  # one task opens and closes them
            yield mine
        assert loop() is mine
        told.append(scope)

    return coroutine, generator

function, function_yields = of("function")
module, module_yields = of("module")
package, package_yields = of("package")
session, session_yields = of("session")

@pytest.fixture
def plain(module_yields, function): return module_yields

@pytest.fixture
def late(request): return request.getfixturevalue("function_yields")

@MARK
@pytest.mark.parametrize("number", range(3))
async def test_every_scope(episode, number, function, function_yields, module, module_yields,
                           package, package_yields, session, session_yields, plain, late):
    assert {function, function_yields, module, module_yields, package, package_yields,
            session, session_yields, plain, late} == {loop()}

CLASS_FIXTURE
class TestDesk:
    METHOD_FIXTURE

    @FIXTURE
    async def mine(self, desk):
        self.desk = desk
        yield self

    @MARK
    async def test_class(self, episode, mine, desk, module, package, session_yields):
        assert mine is self
        assert {self.desk, desk, module, package, session_yields} == {loop()}

def test_sync_episode(episode, function, module_yields, session, late):
    assert function is module_yields is session is late

def test_sync(session, module_yields):
    assert session is module_yields

def test_z_all_that_ended_is_torn_down():
    assert told == ["function"] * 4
"""

OUTCOMES = {
    **{f"test_every_scope[{number}]": "passed" for number in range(3)},
    "test_class": "passed",
    "test_sync_episode": "passed",
}

AS_IT_IS = ("pytest.fixture", "lambda test: test", "")
MARKED = ("pytest.fixture", "pytest.mark.asyncio", "")
FORCED = ("pytest_asyncio.fixture", "pytest.mark.asyncio", "import pytest_asyncio")

NEEDS_EVIDENCE = False


def suite_of(fixture, decorator, imports, head=""):
    """Return the suite; the oldest pytest-asyncio wants fixtures of classes inside of one."""
    desk = '@FIXTURE(scope="class")\n{0}async def desk({1}): return loop()'
    where = {
        "CLASS_FIXTURE": "" if IS_OLD else desk.format("", ""),
        "METHOD_FIXTURE": desk.format("    ", "self") if IS_OLD else "",
    }
    text = SUITE
    for name, value in {**where, "DECORATOR": decorator, "IMPORTS": imports + head}.items():
        text = text.replace(name, value)
    return text.replace("FIXTURE", fixture)


def check(suite, text, *arguments, plugins=()):
    (suite.root / "__init__.py").touch()  # older ones want a package for its fixtures
    suite.write(test_fixtures=text)
    ran = suite.run(*arguments, plugins=plugins)
    assert ran.status == 0, ran.output
    assert ran.outcomes == OUTCOMES
    assert set(ran.junit.values()) == {"passed"}


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "-n2"])
def test_no_other_plugin_is_needed(suite, workers):
    text = suite_of(*AS_IT_IS).replace('["function"] * 4', "told")
    check(suite, text, *workers, plugins=("xdist",))


@pytest.mark.parametrize("mode", ["strict", "auto"])
@pytest.mark.parametrize("form", [AS_IT_IS, MARKED, FORCED], ids=["plain", "marked", "forced"])
def test_with_pytest_asyncio(suite, mode, form):
    suite.configure_asyncio(asyncio_mode=mode)
    check(suite, suite_of(*form), plugins=(ASYNCIO,))


@pytest.mark.parametrize("scope", ["class", "module", "package", "session"])
def test_with_each_scope_of_its_loops(suite, scope):
    name = "scope" if IS_OLD else "loop_scope"
    fixture, decorator, imports = FORCED
    if scope in {"class", "package"}:  # neither is there for every test of the suite
        suite.configure_asyncio(asyncio_mode="auto")
        text = suite_of(*AS_IT_IS).replace(
            "class TestDesk", f"@pytest.mark.asyncio({name}={scope!r})\nclass TestDesk"
        )
    else:
        suite.configure_asyncio()
        text = suite_of(fixture, f"{decorator}({name}={scope!r})", imports)
    check(suite, text, plugins=(ASYNCIO,))


def test_with_anyio(suite):
    head = '\n\n@pytest.fixture(scope="session")\ndef anyio_backend(): return "asyncio"\n'
    text = suite_of("pytest.fixture", "pytest.mark.anyio", "", head)
    check(suite, text, plugins=("anyio",))


SHARED = """
import asyncio
import pytest

loops = []

@pytest.fixture(scope="session")
async def desk():
    mine = asyncio.get_running_loop()
    yield mine
    assert asyncio.get_running_loop() is mine

@pytest.fixture(scope="module")
async def chair(desk):
    assert asyncio.get_running_loop() is desk
    return desk

@pytest.fixture
async def lamp(desk):
    assert asyncio.get_running_loop() is desk
    return desk

@pytest.mark.asyncio(LOOP_SCOPE="module")
async def test_shares_before(desk, chair, lamp):
    assert asyncio.get_running_loop() is desk is chair is lamp
    loops.append(desk)

async def test_episode(episode, desk):
    assert asyncio.get_running_loop() is desk
    loops.append(desk)

@pytest.mark.asyncio(LOOP_SCOPE="module")
async def test_shares_after(desk, chair, lamp):
    assert asyncio.get_running_loop() is desk is chair is lamp

@pytest.mark.asyncio(LOOP_SCOPE="module")
async def test_shares_what_that_one_shares(chair):
    assert asyncio.get_running_loop() is chair

async def test_has_its_own():
    assert asyncio.get_running_loop() not in loops
"""


def test_a_test_that_shares_its_loop_with_such_a_fixture_joins(suite):
    suite.configure_asyncio(asyncio_mode="auto")
    suite.write(test_shared=SHARED.replace("LOOP_SCOPE", "scope" if IS_OLD else "loop_scope"))
    ran = suite.run(plugins=(ASYNCIO,))
    assert ran.status == 0, ran.output
    assert ran.outcomes == {"test_episode": "passed"}
    assert len(ran.junit) == 5


FOREIGN = """
import asyncio
import pytest

@pytest.fixture(scope="session")
async def desk(): return asyncio.get_running_loop()

async def test_first(desk): pass

async def test_episode(episode, request):
    request.getfixturevalue("desk")

@pytest.fixture
def late(request): return request.getfixturevalue("desk")

async def test_by_a_fixture(episode, late): pass
"""


def test_a_fixture_that_was_made_on_another_loop_is_refused(suite):
    suite.configure_asyncio("session", asyncio_mode="auto")
    suite.write(test_foreign=FOREIGN)
    ran = suite.run(plugins=(ASYNCIO,))
    assert ran.reasons["test_by_a_fixture"] == (
        "InputError: test_foreign.py::test_by_a_fixture: the async fixture 'desk' was made on "
        "another event loop, by a test of another plugin; name it as a parameter of this test, too"
    )
    assert ran.outcomes["test_by_a_fixture"] == "error"
    assert ran.junit["test_first"] == "passed"
