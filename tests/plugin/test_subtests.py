"""Subtests of an episode: they neither end it nor pass it over."""

from __future__ import annotations

import pytest

SUITE = """\
import unittest
import pytest

def test_fine(episode, subtests):
    for number in range(3):
        with subtests.test("sum", number=number):
            assert number < 3
    with episode.turn("Hello") as turn:
        turn.reply("Hi")

def test_bad(episode, subtests):
    for number in range(3):
        with subtests.test("sum", number=number):
            assert number != 1, "one is bad"
    episode.check("went on", True)

def test_broken(episode, subtests):
    with subtests.test("lookup"):
        raise ConnectionError("refused")

@pytest.mark.episode(evidence="none")
def test_skips(episode, subtests):
    with subtests.test("weather"):
        pytest.skip("no weather")

def test_bad_then_skipped(episode, subtests):
    with subtests.test(number=1):
        assert False, "no"
    pytest.skip("enough")

def test_bad_then_raises(episode, subtests):
    with subtests.test():
        assert False, "no"
    raise KeyError("x")

@pytest.mark.episode(evidence="none")
@pytest.mark.xfail(reason="known")
def test_expected(episode, subtests):
    with subtests.test():
        assert False, "no"

@pytest.mark.episode
class TestOld(unittest.TestCase):
    def test_old(self):
        with self.subTest("sum", number=1):
            self.assertEqual(1, 2)
"""


IS_OLD = pytest.version_tuple < (9,)
"""Subtests are pytest's own since then, and of pytest-subtests before."""


@pytest.fixture(autouse=True)
def pytest_subtests(monkeypatch):
    if IS_OLD:
        monkeypatch.setenv(
            "PYTEST_PLUGINS", "xdist.plugin,pytest_subtests,ci_agent_eval.pytest_plugin"
        )


def line_of(text: str) -> int:
    return SUITE.splitlines().index(text) + 1


def test_each_end_has_its_outcome(suite, workers):
    suite.write(SUITE)
    ran = suite.run(workers)
    refused = line_of('        raise ConnectionError("refused")')
    broken = f"ConnectionError: refused (test_suite.py:{refused})"
    missing = line_of('    raise KeyError("x")')
    key_error = f"KeyError: 'x' (test_suite.py:{missing})"
    assert {name: (e.outcome, e.reason) for name, e in ran.episodes.items()} == {
        "test_fine": ("passed", None),
        "test_bad": ("failed", "failed: sum (number=1)"),
        "test_broken": ("error", f"in subtest lookup: {broken}"),
        "test_skips": ("passed", None),
        "test_bad_then_skipped": ("failed", "failed: (number=1); then skipped: enough"),
        "test_bad_then_raises": ("failed", f"failed: subtest; then {key_error}"),
        "test_expected": ("passed", None),
        "test_old": ("failed", "failed: sum (number=1)"),
    }
    for name in ("test_bad", "test_broken", "test_bad_then_skipped", "test_old"):
        ran.result.stdout.fnmatch_lines([f"FAILED test_suite.py::*{name} - *"])
    assert ran.properties["test_bad"]["agent_eval.outcome"] == "failed"
    assert ran.episodes["test_fine"].trajectory_summary.steps_count == 1, "the turn after them"
    expect_an_assertion_with_its_place(ran.episodes["test_bad"])


def expect_an_assertion_with_its_place(episode):
    bad, on = episode.assertions
    assert (bad.name, bad.passed, bad.file) == ("sum (number=1)", False, "test_suite.py")
    assert bad.line == line_of('            assert number != 1, "one is bad"')
    assert bad.reason is not None
    assert bad.reason.startswith("one is bad")
    assert (on.name, on.passed) == ("went on", True)


@pytest.mark.skipif(IS_OLD, reason="pytest-subtests goes on after it")
def test_one_that_ends_the_test_is_listed_once(suite):
    suite.write(SUITE)
    episode = suite.run("-x", "-k", "test_bad and not then").episodes["test_bad"]
    assert [a.name for a in episode.assertions] == ["sum (number=1)"]
    assert episode.reason == "failed: sum (number=1)"
