"""An exception after a failed assert: the episode is failed, as in evaluations."""

from __future__ import annotations

import pytest

HELPERS = """\
def check_empty(calls):
    try:
        assert not calls, "not empty"
    finally:
        calls[5]

def convert(calls):
    try:
        assert not calls, "not empty"
    except AssertionError as error:
        raise KeyError("b") from error
"""

AFTER_AN_ASSERT = """\
import asyncio, pytest
from ci_agent_eval import check
from helpers import check_empty, convert

pytestmark = pytest.mark.episode(evidence="none")

def test_cleanup():
    try:
        assert not [1], "not empty"
    finally:
        [][0]

def test_helper():
    check_empty([1])

def test_converted():
    convert([1])

def test_without_its_context():
    try:
        assert not [1], "not empty"
    except AssertionError:
        raise KeyError("b") from None

def test_by_hand():
    try:
        pytest.fail("not empty")
    finally:
        [][0]

def test_infrastructure_error_of_ours(episode):
    try:
        assert not [1], "not empty"
    finally:
        episode.check("", object())

def test_group():
    inner = ExceptionGroup("inner", [KeyError("b"), AssertionError("not empty")])
    raise ExceptionGroup("outer", [OSError("c"), inner])

async def test_tasks():
    started = asyncio.Event()

    async def fail():
        await started.wait()
        assert not [1], "not empty"

    async def break_down():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("closed")

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())
        group.create_task(break_down())

async def test_timeout():
    async with asyncio.timeout(0):
        try:
            assert not [1], "not empty"
        finally:
            await asyncio.Event().wait()
"""

CHECKED = """\
from ci_agent_eval import check

def test_check(episode):
    try:
        check(False, "polite")
    finally:
        [][0]

def test_subtest(episode, subtests):
    with subtests.test("inner"):
        try:
            assert not [1], "not empty"
        finally:
            [][0]
"""

HANDLED = """\
import pytest
from fussy import parse

pytestmark = pytest.mark.episode(evidence="none")

def test_expected_assert():
    with pytest.raises(AssertionError):
        assert not [1]
    raise ConnectionError("refused")

def test_retried():
    for _ in range(2):
        try:
            assert not [1]
        except AssertionError:
            pass
    raise ConnectionError("refused")

def test_inside_of_a_library():
    parse("{")

def test_expected_error():
    with pytest.raises(IndexError):
        try:
            assert not [1]
        finally:
            [][0]
"""

FUSSY = """\
def parse(text):
    try:
        assert text != "{"
    except AssertionError:
        raise ValueError("no JSON")
"""


def test_an_exception_after_a_failed_assert_is_no_infrastructure_error(suite, pytester):
    pytester.makepyfile(helpers=HELPERS)
    suite.write(AFTER_AN_ASSERT)
    episodes = suite.run().episodes
    assert {name: e.outcome for name, e in episodes.items()} == dict.fromkeys(episodes, "failed")
    reasons = {name: e.reason.partition("; then ") for name, e in episodes.items()}
    assert {name: reason for name, (reason, _, _) in reasons.items()} == dict.fromkeys(
        episodes, "not empty"
    )
    assert reasons["test_cleanup"][2].startswith("IndexError: list index out of range (test_")
    assert (
        reasons["test_converted"][2] == "KeyError: 'b' (helpers.py:11, called at test_suite.py:17)"
    )
    (assertion,) = episodes["test_helper"].assertions
    assert (assertion.name, assertion.passed) == ('assert not calls, "not empty"', False)
    assert (assertion.file, assertion.line) == ("helpers.py", 3)


def test_a_failed_check_and_a_subtest_are_followed_by_their_error(suite):
    suite.write(CHECKED)
    episodes = suite.run().episodes
    assert {name: (e.outcome, len(e.assertions)) for name, e in episodes.items()} == {
        "test_check": ("failed", 1),
        "test_subtest": ("failed", 1),
    }
    reason = "failed: polite; then IndexError: list index out of range (test_suite.py:7)"
    assert episodes["test_check"].reason == reason


@pytest.fixture
def library(pytester):
    folder = pytester.path / "site-packages"
    folder.mkdir()
    (folder / "fussy.py").write_text(FUSSY)
    pytester.syspathinsert(folder)


def test_a_failed_assert_that_was_handled_changes_nothing(suite, library):
    suite.write(HANDLED)
    assert {name: (e.outcome, e.reason) for name, e in suite.run().episodes.items()} == {
        "test_expected_assert": ("error", "ConnectionError: refused (test_suite.py:9)"),
        "test_retried": ("error", "ConnectionError: refused (test_suite.py:17)"),
        "test_inside_of_a_library": ("error", "ValueError: no JSON (test_suite.py:20)"),
        "test_expected_error": ("passed", None),
    }


def test_an_evaluation_that_catches_its_failed_assert_is_failed(suite, pytester):
    pytester.makepyfile(
        desk_eval="""
        def test_desk(episode):
            assert 1 == 1
            try:
                assert not [1], "not empty"
            except AssertionError:
                raise KeyError("b")
        """
    )
    ran = suite.run("--eval", "desk_eval.py")
    ran.result.assert_outcomes(failed=1)
    episode = ran.episodes["test_desk"]
    assert (episode.outcome, [a.passed for a in episode.assertions]) == ("failed", [True, False])
