"""Fixtures that several tests share: their asserts belong to no episode.

The test that sets one up depends on the order and on the worker; so their asserts raise, as in any
file, and a broken fixture is an error of every test that uses it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from ci_agent_eval.recording.active_episode import enter_shared_fixture, leave_shared_fixture


class SharedFixtures:
    """Leaves the active episode during setup and teardown of fixtures wider than a test."""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """Leave the episode for the setup and, by the order of finalizers, for the teardown."""
        if fixturedef.scope == "function":
            return (yield)
        fixturedef.addfinalizer(leave_shared_fixture)
        enter_shared_fixture()
        try:
            return (yield)
        finally:
            leave_shared_fixture()
            fixturedef.addfinalizer(enter_shared_fixture)
