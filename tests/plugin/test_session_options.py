"""--episode-suite, --episode-commit and --episode-watched: what is said of the session."""

from __future__ import annotations

TESTS = "def test_one(episode): pass"


def test_they_are_in_the_session_and_the_environment_says_of_which_run_it_is(suite, monkeypatch):
    monkeypatch.setenv("GITHUB_RUN_ID", "77")
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "3")
    suite.write(TESTS)
    options = ("--episode-suite=refunds", "--episode-commit=abc123", "--episode-watched")
    ran = suite.run(*options)
    session = ran.session
    assert (session.suite, ran.results.suite, session.commit) == ("refunds", "refunds", "abc123")
    assert (session.watched, session.process_status) == (True, None)
    assert (session.run, session.attempt) == ("77", 3)


def test_by_default_nobody_waits_and_no_commit_of_the_environment_is_taken(suite, monkeypatch):
    monkeypatch.setenv("GITHUB_SHA", "def456")
    suite.write(TESTS)
    ran = suite.run()
    assert (ran.session.commit, ran.session.watched, ran.results.suite) == (None, False, "default")
    suite.pytester.makeini("[pytest]\nepisode_suite = from-ini\n")
    assert suite.run().results.suite == "from-ini"
