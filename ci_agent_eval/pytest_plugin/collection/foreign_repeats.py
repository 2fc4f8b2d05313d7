"""Refuses plugins that run a test several times, or elsewhere, where no attempt can be recorded."""

from __future__ import annotations

import pytest

_REFUSED = (
    (
        "repeat",
        ("repeat", "count"),
        "pytest-repeat makes each repeat a test of its own; use the episode's iterations",
    ),
    (
        "pytest_forked",
        ("forked", "forked"),
        "pytest-forked runs a test in a process of which nothing is recorded; use -n",
    ),
)
"""pytest's name of each plugin, its marker and its option, and what to use instead."""


def refuse_foreign_repeats(item: pytest.Item) -> None:
    """Raise pytest.UsageError for an episode that such a plugin would run."""
    for name, (marker, option), advice in _REFUSED:
        if not item.config.pluginmanager.hasplugin(name):
            continue
        asked = item.config.getoption(option, default=None)
        # One repeat is none.
        is_for_all = asked is True or (isinstance(asked, int) and asked > 1)
        if is_for_all or item.get_closest_marker(marker) is not None:
            raise pytest.UsageError(f"{item.nodeid}: {advice}")
