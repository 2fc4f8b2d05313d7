"""A plugin of inner suites that are about something else than evidence: their episodes opt out."""

from __future__ import annotations

import pytest

from ci_agent_eval.pytest_plugin import detection


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in filter(detection.is_episode, items):
        item.add_marker(pytest.mark.episode(evidence="none"))
