"""A run of one file of evaluations."""

from __future__ import annotations

import pytest


@pytest.fixture
def measured(suite):
    """Run an evaluation of these tests."""

    def run(tests, *arguments):
        suite.pytester.makepyfile(chat_eval=tests)
        return suite.run("chat_eval.py", "-W", "error", *arguments)

    return run
