"""Detection of episodes among the items; fast, because it checks every item of every project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import is_evaluation
from ci_agent_eval.pytest_plugin.options import MARKER_HELP

if TYPE_CHECKING:
    from ci_agent_eval.contract.episode import Episode
    from ci_agent_eval.pytest_plugin.episodes.endings import EpisodeItem

NAME = "episode"
"""Name of the marker and of the fixture."""

RECORDER = "_agent_eval_recorder"
"""Name of the fixture that every episode's item requests; `episode` is an alias for it."""

FIXTURES = "ci_agent_eval.pytest_plugin.fixtures"
"""Module that holds our fixtures."""

CONVERSATION = "cae_declared"
"""Attribute of a test function that `@conversation` decorates, as `authoring` spells it."""

SCENARIOS = "_agent_eval_scenarios"
"""Attribute of one that `@scenarios` decorates, as `authoring` spells it."""

LINKED_ATTRIBUTE = "__agent_eval_linked__"
"""Attribute of one that `@llm_unit` or `@llm_episode` decorates, as `opik` spells it."""

RETURNING_ATTRIBUTE = "__agent_eval_returning__"
"""Attribute of one that `@llm_episode` decorates."""

_OWNS_MARKER = pytest.StashKey[bool]()


EPISODE: pytest.StashKey[EpisodeItem] = pytest.StashKey()

REPORTED_EPISODE: pytest.StashKey[Episode | None] = pytest.StashKey()
"""In an item's stash: the redacted episode of its last report; None after the test."""


def is_episode(item: pytest.Item) -> bool:
    """Return whether the item is marked, uses our fixture, returns its episode, or is measured."""
    return (
        uses_fixture(item)
        or is_marked(item)
        or returns_episode(item)
        or is_conversation(item)
        or is_evaluation(item)
    )


def returns_episode(item: pytest.Item) -> bool:
    """Return whether the item's test is decorated with `@llm_episode`."""
    return hasattr(getattr(item, "obj", None), RETURNING_ATTRIBUTE)


def is_conversation(item: pytest.Item) -> bool:
    """Return whether the item's test is decorated with `@conversation`."""
    return hasattr(getattr(item, "obj", None), CONVERSATION)


def is_linked(item: pytest.Item) -> bool:
    """Return whether the item's test is decorated with `@llm_unit` or `@llm_episode`."""
    return hasattr(getattr(item, "obj", None), LINKED_ATTRIBUTE)


def is_marked(node: pytest.Item | pytest.Collector) -> bool:
    """Return whether the node is an item with our marker."""
    if NAME not in node.keywords:  # which are searched faster than markers
        return False
    if not isinstance(node, pytest.Item) or node.get_closest_marker(NAME) is None:
        return False
    return owns_marker(node)


def owns_marker(node: pytest.Item | pytest.Collector) -> bool:
    """Return whether the marker `episode` is ours; a project that registers one keeps its own."""
    stash = node.config.stash
    if _OWNS_MARKER not in stash:
        stash[_OWNS_MARKER] = not any(
            line.partition("(")[0].partition(":")[0].strip() == NAME and line != MARKER_HELP
            for line in node.config.getini("markers")
        )
    return stash[_OWNS_MARKER]


def uses_fixture(item: pytest.Item) -> bool:
    """Return whether the item's fixture `episode` is ours or extends ours.

    pytest has no public way to find the definition of a fixture that an item will get; its own
    `--fixtures-per-test` reads `_fixtureinfo`.
    """
    if NAME not in getattr(item, "fixturenames", ()):
        return False
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.get(NAME, ()) if info is not None else ()
    for definition in reversed(definitions):
        if definition.func.__module__ == FIXTURES:
            return True
        if NAME not in definition.argnames:
            return False
    return False


def get_plugin_name(plugin: Any) -> str:
    """Return the dotted name of a plugin module, or of the module of a plugin object."""
    return str(getattr(plugin, "__name__", None) or type(plugin).__module__)
