"""Wider fixtures that only a running test asks for, and those of packages in packages."""

from __future__ import annotations

from tests.plugin.concurrency.shared import MODULE, WATCH, run
from tests.plugin.conftest import OPTING_OUT


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
