"""--episode-watched: whoever runs pytest will say in the session how its process ended."""

from __future__ import annotations

TESTS = "def test_one(episode): pass"


def test_it_is_in_the_session_and_in_no_help(suite, workers, pytester):
    suite.write(TESTS)
    session = suite.run("--episode-watched", workers).session
    assert (session.watched, session.process_status) == (True, None)
    assert "--episode-watched" not in pytester.runpytest_inprocess("--help").stdout.str()


def test_a_run_by_hand_waits_for_nobody(suite, workers):
    suite.write(TESTS)
    assert suite.run(workers).session.watched is False


def test_of_which_run_and_attempt_it_is_stands_in_the_session(suite, workers, monkeypatch):
    monkeypatch.setenv("GITHUB_RUN_ID", "77")
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "3")
    suite.write(TESTS)
    session = suite.run(workers).session
    assert (session.run, session.attempt) == ("77", 3)
