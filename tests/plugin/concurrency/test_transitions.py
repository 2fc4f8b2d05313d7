"""What a thread warns of and asserts while pytest goes from one item to the next is its own."""

from __future__ import annotations

import pytest

from tests.plugin.concurrency.test_same import settled

TURNS = """
import threading

from collections import defaultdict

begin, done = (defaultdict(threading.Event) for _ in range(2))

def act_now(moment=0):
    \"\"\"Let the thread of the second episode act, and wait for it.\"\"\"
    begin[moment].set()
    assert done[moment].wait(600)
"""

SUITE = """
import asyncio
import warnings
import pytest
from meeting import meet
from parties import PARTIES
from turns import begin, done

async def test_first(episode):
    await meet(PARTIES)
    warnings.warn("first")

def act():
    for moment in range(MOMENTS):
        if PARTIES > 1:
            assert begin[moment].wait(600)
        try:
            ACT
        finally:
            done[moment].set()

async def test_second(episode):
    thread = asyncio.create_task(asyncio.to_thread(act))
    await asyncio.sleep(0)
    await meet(PARTIES)
    await thread
"""


def run(suite, act, conftest, *options, head="", moments=1):
    """Run one by one, and two at once; return what both have printed."""
    told = []
    tests = head + SUITE.replace("ACT", act).replace("MOMENTS", str(moments))
    for parties in (1, 2):
        suite.pytester.makepyfile(turns=TURNS, parties=f"PARTIES = {parties}")
        suite.write(tests, conftest if parties == 2 else "")
        ran = suite.run_apart(f"--episode-concurrency={parties}", *options)
        lines = settled(ran.result.stdout.str()).splitlines()
        told.append([line for line in lines if "runpytest" not in line and "note:" not in line])
    return told


def test_a_warning_while_pytest_tears_down_reports_and_leaves_another_item(suite):
    conftest = """
import pytest
from turns import act_now

def pytest_runtest_teardown(item):
    if item.name == "test_first":
        act_now(0)

def pytest_warning_recorded(warning_message, nodeid):
    if "first" in str(warning_message.message):
        act_now(1)

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    result = yield
    if item.name == "test_first":
        act_now(2)
    return result
"""
    told = run(suite, 'warnings.warn(f"second {moment}")', conftest, moments=3)
    assert told[0] == told[1]
    assert any("test_suite.py::test_second" in line for line in told[1])
    assert any("second 2" in line for line in told[1])


HALF = """
import os
from turns import act_now, begin

armed = []

class Watched(type):
    \"\"\"Of a warning that is compared when pytest adds its filter.\"\"\"

    def __eq__(self, other):
        if armed and not begin[0].is_set():
            act_now()
        return self is other

    def __hash__(self):
        return 1

class Late(UserWarning, metaclass=Watched): pass
"""


def test_a_warning_while_pytest_adds_the_filters_of_the_next_item(suite):
    """Those of DeprecationWarning are added in two steps: shown always, then an error."""
    conftest = """
import half

def pytest_runtest_logfinish(nodeid):
    if "test_first" in nodeid:
        half.armed.append(True)
"""
    suite.pytester.makepyfile(half=HALF)
    options = ("-W", "error::half.Late", "-W", "error::DeprecationWarning")
    act = 'warnings.warn("second", DeprecationWarning)'
    told = run(suite, act, conftest, *options, "-p", "half")
    assert told[0] == told[1]
    assert any("FAILED test_suite.py::test_second" in line for line in told[1])


def test_a_failed_assert_between_two_items(suite):
    conftest = """
import pytest
from turns import act_now

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    result = yield
    if item.name == "test_first":
        act_now()
    return result
"""
    act = "assert {1: 'a' * 300, 2: 3} == {1: 'b' * 300, 2: 3}"
    told = run(suite, act, conftest, "-vv")
    assert told[0] == told[1]
    assert any("Differing items:" in line for line in told[1])


FIRST_FILTERS = """
import warnings
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    with warnings.catch_warnings():
        if "first" in item.name:
            warnings.simplefilter("ignore", UserWarning)
        return (yield)
"""

ALL_FILTERS = """
import warnings
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol():
    warnings.simplefilter("ignore", UserWarning)
    return (yield)
"""


@pytest.mark.parametrize(
    ("conftest", "options", "expected"),
    [
        (FIRST_FILTERS, (), {"passed": 2, "warnings": 1}),
        (ALL_FILTERS, ("-W", "error::UserWarning"), {"failed": 2}),
    ],
    ids=["first", "all"],
)
def test_filters_that_a_hook_adds_count_for_tests_that_run_alone(
    suite, conftest, options, expected
):
    suite.write(
        "import warnings\n"
        "def test_first(episode): warnings.warn('first')\n"
        "def test_second(episode): warnings.warn('second')\n",
        f"{conftest}\ndef pytest_collection_modifyitems(items):\n"
        "    for item in items:\n"
        "        item.add_marker(pytest.mark.episode(evidence='none'))\n",
    )
    ran = suite.run_apart("--episode-concurrency=2", *options)
    assert ran.result.parseoutcomes() == expected


UNRAISABLE = """
class Broken:
    def __del__(self):
        raise ValueError("in a finalizer")

"""


def test_an_error_in_a_finalizer_is_that_of_the_episode_that_runs_it(suite):
    conftest = """
from turns import act_now

def pytest_runtest_teardown(item):
    if item.name == "test_first":
        act_now()
"""
    options = ("-W", "error::pytest.PytestUnraisableExceptionWarning")
    told = run(suite, "Broken()", conftest, *options, head=UNRAISABLE)
    assert any("FAILED test_suite.py::test_second" in line for line in told[1])
    assert not any("FAILED test_suite.py::test_first" in line for line in told[1])
