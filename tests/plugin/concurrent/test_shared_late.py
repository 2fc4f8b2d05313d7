"""Wider fixtures that only a running test asks for, and those of packages in packages."""

from __future__ import annotations

import pytest

from tests.plugin.concurrent.shared import MODULE, WATCH, run


@pytest.mark.parametrize("asking", [1, 2, 3])
def test_one_that_is_asked_for_while_a_test_runs_outlives_it(suite, asking):
    suite.write(
        f"""
import asyncio
import pytest

@pytest.fixture(scope="module")
def floor(log):
    log.up("floor"); yield []; log.down("floor")

@pytest.mark.parametrize("number", range(4))
async def test_one(episode, request, log, number):
    await asyncio.sleep(0)
    if number == {asking}:
        request.getfixturevalue("floor").append(number)

def test_two(request, log):
    assert request.getfixturevalue("floor") == [{asking}]
    assert log.told == ["up floor"]
""",
        conftest=WATCH,
    )
    one, many = run(suite, passed=5)
    assert one == many


def test_packages_in_packages(suite):
    suite.pytester.makeconftest(WATCH)
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
