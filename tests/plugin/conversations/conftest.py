"""Tests of conversations with agents that are there already."""

from __future__ import annotations

import pytest

from tests.plugin.conversations.rig import AGENTS


@pytest.fixture
def write(suite):
    """Write tests below the agents, each argument as a module of its own; returns the suite."""

    def write(*modules):
        suite.write("")
        files = {f"test_{number}": AGENTS + tests for number, tests in enumerate(modules)}
        suite.pytester.makepyfile(**files)
        return suite

    return write
