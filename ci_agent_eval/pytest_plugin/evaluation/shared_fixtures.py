"""Fixtures that several tests share: what they assert belongs to none of the episodes.

Which test happens to set one up depends on the order and on the worker; so their asserts
raise, as in any file, and a broken one is an error of every test that asks for it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from ci_agent_eval.recording.active_episode import enter_shared_fixture, leave_shared_fixture


class SharedFixtures:
    """Steps out of the running episode around fixtures of a wider scope than a test's."""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """Step out for the setup, and, by the order of finalizers, for the teardown."""
        if fixturedef.scope == "function":
            return (yield)
        fixturedef.addfinalizer(leave_shared_fixture)
        enter_shared_fixture()
        try:
            return (yield)
        finally:
            leave_shared_fixture()
            fixturedef.addfinalizer(enter_shared_fixture)
