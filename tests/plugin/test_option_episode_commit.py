"""--episode-commit: the commit under test, from the command line and nowhere else."""

from __future__ import annotations

TESTS = "def test_one(episode): pass"


def test_it_is_in_the_session(suite):
    suite.write(TESTS)
    assert suite.run("--episode-commit=abc123").session.commit == "abc123"


def test_the_environment_is_not_asked(suite, monkeypatch):
    monkeypatch.setenv("GITHUB_SHA", "def456")
    suite.write(TESTS)
    assert suite.run().session.commit is None
