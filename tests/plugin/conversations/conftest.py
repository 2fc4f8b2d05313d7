"""Tests of conversations with agents that are there already."""

from __future__ import annotations

import pytest

from tests.plugin.conversations.rig import AGENTS


@pytest.fixture
def write(suite):
    def write(tests):
        suite.write(AGENTS + tests)
        return suite

    return write
