"""Fixtures that concurrent episodes share."""

from __future__ import annotations

import pytest

from tests.plugin.concurrency.shared import MODULE, WATCH, run
from tests.plugin.conftest import OPTING_OUT
from tests.samples import run_sample

# Wider fixtures are set up once and shared, and live and die as in any run.


MODULES = {
    "each_scope_is_had_once_by_all": """
import pytest
from concurrency import IS_CONCURRENT
from meeting import meet

@pytest.fixture(scope="session")
def house(log):
    log.up("house"); yield []; log.down("house")

@pytest.fixture(scope="package")
def street(log, house):
    log.up("street"); yield []; log.down("street")

@pytest.fixture(scope="module")
def floor(log, house):
    log.up("floor"); yield []; log.down("floor")

@pytest.fixture(scope="class")
def room(log, floor):
    log.up("room"); yield []; log.down("room")

class TestOne:
    @pytest.mark.parametrize("number", range(4))
    async def test_meet(self, episode, room, street, house, number):
        room.append(number)
        house.append(number)
        if IS_CONCURRENT:
            await meet(4)
            assert len(room) == len(house) == 4

class TestTwo:
    async def test_alone(self, episode, room, house, floor):
        assert room == []
        assert house == [0, 1, 2, 3]
""",
    "no_two_classes_have_theirs_at_once": """
import asyncio
import pytest

@pytest.fixture(scope="class")
def floor(log):
    log.up("class floor"); yield []; log.down("class floor")

class Base:
    @pytest.mark.parametrize("number", range(3))
    async def test_one(self, episode, log, floor, number):
        for _ in range(10):
            assert log.alive.count("class floor") == 1
            await asyncio.sleep(0)

class TestA(Base): pass
class TestB(Base): pass
class TestC(Base):
    class TestInner(Base): pass
""",
    "one_that_is_asked_for_while_a_test_runs_outlives_it": """
import asyncio
import pytest

@pytest.fixture(scope="module")
def floor(log):
    log.up("late floor"); yield []; log.down("late floor")

@pytest.mark.parametrize("number", range(4))
async def test_one(episode, request, log, number):
    await asyncio.sleep(0)
    if number == 2:
        request.getfixturevalue("floor").append(number)

def test_two(request, log):
    assert request.getfixturevalue("floor") == [2]
    assert log.told.count("up late floor") == 1
""",
    "one_that_fails_fails_each_of_its_tests_once": """
import pytest

tried = []

@pytest.fixture(scope="module")
def floor(log):
    tried.append("floor")
    raise OSError("no floor")

@pytest.mark.parametrize("number", range(3))
async def test_one(episode, floor, number): pass

async def test_two(episode, log): assert tried == ["floor"]
""",
    "setup_of_modules_and_classes": """
import json, pathlib, pytest

told = []

def setup_module(module): told.append("up module")
def teardown_module(module):
    told.append("down module")
    pathlib.Path("told_setup.json").write_text(json.dumps(told))

class TestOne:
    @classmethod
    def setup_class(cls): told.append("up one"); cls.shared = []
    @classmethod
    def teardown_class(cls): told.append("down one")
    async def test_a(self, episode): self.shared.append(1)
    async def test_b(self, episode): self.shared.append(1)
    def test_c(self): assert self.shared == [1, 1]

class TestTwo:
    @classmethod
    def setup_class(cls): told.append("up two")
    @classmethod
    def teardown_class(cls): told.append("down two")
    async def test_a(self, episode): pass
""",
}


def test_each_kind_lives_and_dies_as_one_by_one(suite):
    suite.pytester.makeconftest(WATCH + OPTING_OUT)
    suite.pytester.makepyfile(**{f"test_{name}": tests for name, tests in MODULES.items()})
    one, many = run(suite, passed=27, errors=3)
    assert one == many


@pytest.mark.parametrize("seed", run_sample([(1,), (2,), (3,)], {0}))
def test_no_two_modules_have_theirs_at_once(suite, seed):
    shuffled = """
import random

def pytest_collection_modifyitems(items):
    random.Random(SEED).shuffle(items)
"""
    suite.write(MODULE, conftest=WATCH + shuffled.replace("SEED", str(seed)))
    suite.pytester.makepyfile(test_two=MODULE, test_three=MODULE)
    one, many = run(suite, passed=18)
    assert one == many


def test_a_parametrized_one_has_one_value_at_a_time(suite):
    suite.write(
        """
import asyncio
import pytest

@pytest.fixture(scope="session", params=["gold", "basic", "none"])
def tier(request, log):
    log.up("tier"); yield request.param; log.down("tier")

@pytest.fixture(scope="session")
def desk(tier, log):
    log.up("desk"); yield [tier]; log.down("desk")

@pytest.mark.parametrize("number", range(4))
async def test_one(episode, log, desk, tier, number):
    for _ in range(10):
        assert log.alive == ["tier", "desk"]
        assert desk == [tier]
        await asyncio.sleep(0)

async def test_two(episode, desk, tier):
    assert desk == [tier]
""",
        conftest=WATCH,
    )
    one, many = run(suite, passed=15)
    assert one == many


# Wider fixtures that only a running test asks for, and those of packages in packages.


def test_packages_in_packages(suite):
    suite.pytester.makeconftest(WATCH + OPTING_OUT)
    test = MODULE.replace('scope="module"', 'scope="package"').replace(
        "def floor(log)", "def unused(log)"
    )
    fixture = """
import pytest

@pytest.fixture(scope="package")
def floor(log):
    log.up("floor"); yield []; log.down("floor")
"""
    for folder in ("one", "one/inner", "two"):
        made = suite.pytester.path / folder
        made.mkdir()
        (made / "__init__.py").write_text("")
        (made / "conftest.py").write_text(fixture)
        (made / "test_a.py").write_text(test)
        (made / "test_b.py").write_text(test)
    one, many = run(suite, arguments=("-p", "no:randomly"), passed=36)
    assert one == many


LATE = """
import asyncio
import pytest
from meeting import let_others_work

@pytest.mark.parametrize("number", range(2))
async def test_late(episode, request, number):
    await let_others_work()
    assert request.getfixturevalue("floor") == request.node.module.__name__
    await let_others_work()
"""

FLOOR = """
@pytest.fixture(scope="module")
def floor(request, log):
    log.up(request.node.name)
    yield request.module.__name__
    log.down(request.node.name)
"""


def test_modules_that_ask_late_for_the_same_fixture_have_their_own_values(suite):
    suite.write(LATE, conftest=WATCH + FLOOR)
    asks = LATE.replace("test_late(episode, ", "test_late(episode, floor, ")
    suite.pytester.makepyfile(test_one=LATE, test_three=LATE, test_zwo=asks)
    one, many = run(suite, passed=8)
    assert sorted(one) == sorted(many)


def test_a_class_fixture_is_a_function_s_own_where_there_is_no_class(suite):
    suite.write(
        """
import pytest

@pytest.fixture(scope="class")
def floor(log):
    log.up("floor"); yield []; log.down("floor")

@pytest.mark.parametrize("number", range(4))
async def test_one(episode, floor, number):
    floor.append(number)
    assert floor == [number]
""",
        conftest=WATCH,
    )
    one, many = run(suite, passed=4)
    assert sorted(one) == sorted(many)
