"""Wider fixtures are set up once and shared, and live and die as in any run."""

from __future__ import annotations

import pytest

from tests.plugin.concurrency.shared import MODULE, WATCH, run
from tests.samples import run_sample


def test_each_scope_is_had_once_by_all(suite):
    suite.write(
        """
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
        conftest=WATCH,
    )
    one, many = run(suite, passed=5)
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


def test_those_of_classes_neither(suite):
    suite.write(
        """
import asyncio
import pytest

@pytest.fixture(scope="class")
def floor(log):
    log.up("floor"); yield []; log.down("floor")

class Base:
    @pytest.mark.parametrize("number", range(3))
    async def test_one(self, episode, log, floor, number):
        for _ in range(10):
            assert log.alive.count("floor") == 1
            await asyncio.sleep(0)

class TestA(Base): pass
class TestB(Base): pass
class TestC(Base):
    class TestInner(Base): pass
""",
        conftest=WATCH,
    )
    one, many = run(suite, passed=12)
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


def test_setup_of_modules_and_classes(suite):
    tests = """
import json, pathlib, pytest

told = []

def setup_module(module): told.append("up module")
def teardown_module(module):
    told.append("down module")
    pathlib.Path("told.json").write_text(json.dumps(told))

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
"""
    suite.write(tests)
    one, many = run(suite, passed=4)
    assert one == many


def test_one_that_fails_fails_each_of_its_tests_once(suite):
    suite.write(
        """
import pytest

@pytest.fixture(scope="module")
def floor(log):
    log.told.append("tried")
    raise OSError("no floor")

@pytest.mark.parametrize("number", range(3))
async def test_one(episode, floor, number): pass

async def test_two(episode, log): assert log.told == ["tried"]
""",
        conftest=WATCH,
    )
    one, many = run(suite, errors=3, passed=1)
    assert one == many
