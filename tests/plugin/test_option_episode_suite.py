"""--episode-suite: the suite's name in what is written."""

from __future__ import annotations

TESTS = "def test_one(episode): pass"


def test_it_is_in_the_results_and_the_session(suite):
    suite.write(TESTS)
    ran = suite.run("--episode-suite=refunds")
    assert ran.results.suite == "refunds"
    assert ran.session.suite == "refunds"


def test_the_ini_file_and_the_default(suite, pytester):
    suite.write(TESTS)
    assert suite.run().results.suite == "default"
    pytester.makeini("[pytest]\nepisode_suite = from-ini\n")
    assert suite.run().results.suite == "from-ini"
