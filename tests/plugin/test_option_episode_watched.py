"""--episode-watched: whoever runs pytest will say in the session how its process ended."""

from __future__ import annotations

TESTS = "def test_one(episode): pass"


def test_it_is_in_the_session_and_in_no_help(suite, pytester):
    suite.write(TESTS)
    session = suite.run("--episode-watched").session
    assert (session.watched, session.process_status) == (True, None)
    assert "--episode-watched" not in pytester.runpytest_inprocess("--help").stdout.str()


def test_a_run_by_hand_waits_for_nobody(suite):
    suite.write(TESTS)
    assert suite.run().session.watched is False


def test_of_which_run_and_attempt_it_is_stands_in_the_session(suite, monkeypatch):
    monkeypatch.setenv("GITHUB_RUN_ID", "77")
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "3")
    suite.write(TESTS)
    session = suite.run().session
    assert (session.run, session.attempt) == ("77", 3)
