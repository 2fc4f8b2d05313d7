"""Which items are episodes; cheap, since every item of every project is asked."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.opik.decorators.decorators import LINKED_ATTRIBUTE, RETURNING_ATTRIBUTE
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import is_evaluation
from ci_agent_eval.pytest_plugin.options import MARKER_HELP

if TYPE_CHECKING:
    from ci_agent_eval.contract.episode import Episode
    from ci_agent_eval.pytest_plugin.episodes.endings import Ending
    from ci_agent_eval.recording import EpisodeRecorder
    from ci_agent_eval.recording.active_episode import RunningEpisode

NAME = "episode"
"""Name of the marker and of the fixture."""

RECORDER = "_agent_eval_recorder"
"""Name of the fixture that every episode's item gets; `episode` is another name for it."""

FIXTURES = "ci_agent_eval.pytest_plugin"
"""Module that holds our fixtures."""

CONVERSATION = "cae_declared"
"""Attribute of a test function that `@conversation` decorates, as that room has it."""

_FOREIGN_MARKER = pytest.StashKey[bool]()


@dataclass(slots=True)
class EpisodeItem:
    """What is kept of an episode's item from its selection to its teardown."""

    nodeid: str
    """Without secrets, and unlike any other item's."""
    scenario_id: str
    """The scenario where the marker names none: the node id that its iterations share."""
    iteration: int = 1
    attempt: int = 0
    problem: str | None = None
    """Why its marker cannot be read."""
    draft: Episode | None = None
    recorder: EpisodeRecorder | None = None
    ended: Episode | None = None
    called: bool = False
    """Its test has returned or raised: reports made before that are of subtests."""
    subtest: Ending | None = None
    """How the subtest ended whose report is on its way."""
    subtest_errors: list[str] = field(default_factory=list)
    """Subtests that ended in an error, in the words of a reason."""
    subtest_failures: list[BaseException] = field(default_factory=list)
    """What failed subtests raised."""
    running: RunningEpisode | None = None
    """What its assertions tell, from the start of its setup to the end of its teardown."""

    facts: dict[str, Any] | None = None
    """What its last report carries for the terminal summary."""

    def forget(self) -> None:
        """Let go of all but who it is: its record is on disk, and there may be thousands."""
        self.draft = self.recorder = self.ended = self.subtest = None
        self.running = self.facts = None
        self.subtest_errors.clear()
        self.subtest_failures.clear()

    @property
    def is_evaluation(self) -> bool:
        """Whether its assertions are measured, and fail no test."""
        return self.draft is not None and self.draft.mode == "evaluation"

    @property
    def has_counted_assertion(self) -> bool:
        """Whether an assert passed; of an episode that needs none they may not be counted."""
        is_counted = self.draft is not None and self.draft.evidence == "required"
        return is_counted and self.running is not None and self.running.asserted


EPISODE = pytest.StashKey[EpisodeItem]()

SHOWN = pytest.StashKey["Episode | None"]()
"""An episode's item as its last report has it: without secrets; None once it is over."""


def is_episode(item: pytest.Item) -> bool:
    """Say whether the item is marked, asks for our fixture, returns its episode, or is measured."""
    return (
        asks_for_fixture(item)
        or is_marked(item)
        or returns_episode(item)
        or is_conversation(item)
        or is_evaluation(item)
    )


def returns_episode(item: pytest.Item) -> bool:
    """Say whether the item's test is decorated with `@llm_episode`."""
    return hasattr(getattr(item, "obj", None), RETURNING_ATTRIBUTE)


def is_conversation(item: pytest.Item) -> bool:
    """Say whether the item's test is decorated with `@conversation`."""
    return hasattr(getattr(item, "obj", None), CONVERSATION)


def is_linked(item: pytest.Item) -> bool:
    """Say whether the item's test is decorated with `@llm_unit` or `@llm_episode`."""
    return hasattr(getattr(item, "obj", None), LINKED_ATTRIBUTE)


def is_marked(node: pytest.Item | pytest.Collector) -> bool:
    """Say whether the node is an item that bears our marker."""
    if not isinstance(node, pytest.Item) or node.get_closest_marker(NAME) is None:
        return False
    return owns_marker(node)


def owns_marker(node: pytest.Item | pytest.Collector) -> bool:
    """Say whether the marker is ours: a project that registers one of this name keeps its own."""
    config = node.config
    if _FOREIGN_MARKER not in config.stash:
        config.stash[_FOREIGN_MARKER] = any(
            line.partition("(")[0].partition(":")[0].strip() == NAME and line != MARKER_HELP
            for line in config.getini("markers")
        )
    return not config.stash[_FOREIGN_MARKER]


def asks_for_fixture(item: pytest.Item) -> bool:
    """Say whether the fixture `episode` of the item is ours, or extends ours.

    pytest has no public way to ask which definition of a fixture an item will get;
    `_fixtureinfo` is what its own `--fixtures-per-test` reads.
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


def get_soft_failure_log(config: pytest.Config) -> Any:
    """Return the module in which pytest-check collects failures; None where it is not in use."""
    plugin: Any = sys.modules.get("pytest_check.plugin")
    is_used = plugin is not None and config.pluginmanager.is_registered(plugin)
    return plugin.check_log if is_used else None


def get_plugin_name(plugin: Any) -> str:
    """Return the dotted name of the module that a plugin is, or whose object it is."""
    return str(getattr(plugin, "__name__", None) or type(plugin).__module__)
