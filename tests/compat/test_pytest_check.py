"""pytest-check: each of its soft checks is an assertion of an evaluation, and evidence in a test."""

from __future__ import annotations

import pytest

TESTS = """
import pytest
from pytest_check import check

class TestSoft:
    def test_fails(self, episode):
        with episode.turn("Hi") as turn:
            turn.reply("Hello")
        assert turn
        check.equal(1, 2)
        check.is_true(False, "is polite")

    def test_holds(self, episode):
        with episode.turn("Hi") as turn:
            turn.reply("Hello")
        check.equal(1, 1)
        assert turn

    def test_breaks(self, episode):
        check.equal(1, 2)
        raise OSError("no server")

    async def test_async(self, episode):
        check.equal(3, 4)

    def test_known(self, request, episode):
        request.applymarker(pytest.mark.xfail(reason="known"))
        check.equal(1, 2)

def test_block(episode):
    with check:
        assert 1 == 2
    assert episode
"""


PASSING = """
import pytest
import pytest_check
from pytest_check import between, check, equal

@pytest.fixture
def greeted(episode):
    with episode.turn("Hi") as turn:
        turn.reply("Hello")

def test_passes(greeted):
    check.equal(1, 1)

def test_passes_by_other_names(greeted):
    pytest_check.is_true(1, "is polite")
    equal("a", "a")
    between(2, 1, 3)
    between(2, 2, 3, ge=True)
    with check.raises(ValueError):
        int("x")

def test_passes_in_part(greeted):
    check.is_in(1, [1])
    check.greater(2, 1)
    pytest_check.greater(1, 2)

def test_fails_more_often_than_reported(greeted):
    check.set_max_report(1)
    check.equal(1, 1)
    check.equal(1, 2)
    check.equal(1, 3)

def test_hides_every_failure(greeted):
    check.set_max_report(0)
    check.equal(1, 2)

def test_asserts_nothing(greeted):
    check.set_max_tb(0)
    check.any_failures()

def test_without_an_episode():
    assert pytest_check.equal(1, 1)
"""


def names(ran, name):
    return [a["name"] for a in ran.assertions(name)]


def failed(ran, name):
    return [a["name"] for a in ran.assertions(name) if not a["passed"]]


def scores(ran):
    return {c["name"].rpartition("::")[2]: c["score"] for c in ran.evaluation["conversations"]}


OUTCOMES = {
    "test_fails": "failed",
    "test_holds": "passed",
    "test_breaks": "failed",
    "test_async": "failed",
    "test_known": "skipped",
    "test_block": "failed",
}


def test_in_an_evaluation_they_are_measured_and_fail_no_test(suite):
    suite.write(soft_eval=TESTS)
    ran = suite.run("soft_eval.py", plugins=("check",))
    assert ran.outcomes == OUTCOMES, ran.output
    assert ran.junit == {**dict.fromkeys(OUTCOMES, "passed"), "test_breaks": "failed"} | {
        "test_known": "skipped"
    }
    assert failed(ran, "test_fails") == ["check 1 == 2", "check bool(False): is polite"]
    assert failed(ran, "test_async") == ["check 3 == 4"]
    assert failed(ran, "test_block") == ["1 == 2"]
    assert scores(ran) == {
        "test_fails": pytest.approx(1 / 3, abs=1e-6),
        "test_holds": 1,
        "test_breaks": 0,
        "test_async": 0,
        "test_block": 0.5,
    }


def test_in_a_test_they_fail_it_by_their_names(suite):
    suite.write(test_soft=TESTS)
    ran = suite.run("test_soft.py", plugins=("check",))
    assert ran.status == 1
    assert ran.outcomes == OUTCOMES, ran.output
    assert ran.junit == {name: OUTCOMES[name] for name in ran.junit}
    assert failed(ran, "test_fails") == ["check 1 == 2", "check bool(False): is polite"]
    assert ran.reasons["test_fails"] == "failed: check 1 == 2; check bool(False): is polite"
    assert "Failed Checks: 2" in ran.output, "pytest-check shows them as ever"


def test_in_an_evaluation_those_that_pass_count_for_the_score(suite):
    suite.write(soft_eval=PASSING)
    ran = suite.run("soft_eval.py", plugins=("check",))
    assert names(ran, "test_passes") == ["check.equal(1, 1)"], ran.output
    assert names(ran, "test_passes_by_other_names") == [
        'pytest_check.is_true(1, "is polite")',
        'equal("a", "a")',
        "between(2, 1, 3)",
        "between(2, 2, 3, ge=True)",
        "with check.raises(ValueError)",
    ]
    (passed,) = ran.assertions("test_passes")
    assert (passed["file"], passed["line"]) == ("soft_eval.py", 12)
    assert ran.reasons["test_asserts_nothing"].startswith("it asserted nothing")
    assert scores(ran) == {
        "test_passes": 1,
        "test_passes_by_other_names": 1,
        "test_passes_in_part": pytest.approx(2 / 3, abs=1e-6),
        "test_fails_more_often_than_reported": pytest.approx(1 / 3, abs=1e-6),
        "test_hides_every_failure": 0,
        "test_asserts_nothing": 0,
        "test_without_an_episode": 1,
    }


def test_in_a_test_those_that_pass_are_evidence(suite):
    suite.write(test_soft=PASSING)
    ran = suite.run("test_soft.py", plugins=("check",))
    assert ran.outcomes == {
        "test_passes": "passed",
        "test_passes_by_other_names": "passed",
        "test_passes_in_part": "failed",
        "test_fails_more_often_than_reported": "failed",
        "test_hides_every_failure": "failed",
        "test_asserts_nothing": "error",
    }, ran.output
    hidden = "failed checks beyond pytest-check's max_report: 1; raise it to see them"
    assert failed(ran, "test_hides_every_failure") == [hidden]


def test_workers_record_the_same(suite):
    suite.write(soft_eval=TESTS, test_soft=TESTS)
    ran = suite.run("soft_eval.py", "test_soft.py", "-n2", plugins=("check", "xdist"))
    outcomes = [(e["nodeid"], e["outcome"]) for e in ran.episodes]
    alone = suite.run("soft_eval.py", "test_soft.py", plugins=("check", "xdist"))
    assert outcomes == [(e["nodeid"], e["outcome"]) for e in alone.episodes]


def test_without_its_plugin_it_says_nothing_of_other_tests(suite):
    suite.write(test_soft=TESTS)
    ran = suite.run("test_soft.py::TestSoft::test_holds", "-p", "no:check")
    assert ran.outcomes == {"test_holds": "passed"}, ran.output
