"""pytest-check: each of its soft failures is a failed assertion, of evaluations and of tests."""

from __future__ import annotations

import pytest

TESTS = """
import pytest
from pytest_check import check

class TestSoft:
    def test_fails(self, episode):
        with episode.turn("Hi") as turn:
            turn.reply("Hello")
        assert 1
        check.equal(1, 2)
        check.is_true(False, "is polite")

    def test_holds(self, episode):
        with episode.turn("Hi") as turn:
            turn.reply("Hello")
        check.equal(1, 1)
        assert 1

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
    assert 1
"""


def failed(ran, name):
    (episode,) = (e for e in ran.episodes if e["nodeid"].endswith(f"::{name}"))
    return [a["name"] for a in episode["assertions"] if not a["passed"]]


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
    scores = {c["name"].rpartition("::")[2]: c["score"] for c in ran.evaluation["conversations"]}
    assert scores == {
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
