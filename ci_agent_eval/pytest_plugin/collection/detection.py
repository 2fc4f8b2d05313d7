"""Detection of episodes among the items; fast, because it checks every item of every project."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

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


@dataclass(slots=True)
class EpisodeItem:
    """The state of an episode's item from its selection to its teardown."""

    nodeid: str
    """Node id without secrets, unique among the items."""
    scenario_id: str
    """Scenario id for a marker without one: the node id that its iterations share."""
    iteration: int = 1
    attempt: int = 0
    problem: str | None = None
    """Why the marker is invalid."""
    initial_episode: Episode | None = None
    recorder: EpisodeRecorder | None = None
    final_episode: Episode | None = None
    called: bool = False
    """Whether the test has returned or raised; earlier reports are about subtests."""
    subtest: Ending | None = None
    """The ending of the subtest whose report comes next."""
    subtest_errors: list[str] = field(default_factory=list)
    """Reasons of the subtests that ended in an error."""
    subtest_failures: list[BaseException] = field(default_factory=list)
    """Exceptions that failed subtests raised."""
    running: RunningEpisode | None = None
    """The running episode, from the start of setup to the end of teardown."""

    unreported: pytest.CallInfo[None] | None = None
    """How the test's call ended, until a report of it is made: pytest-retry makes only one."""
    is_repeated: bool = False
    """Whether the attempt began before the one before it was reported."""
    summary_record: dict[str, Any] | None = None
    """The record for the terminal summary in the last report."""

    def forget(self) -> None:
        """Free everything except the item's identity.

        The episode is on disk, and there may be thousands of items.
        """
        self.initial_episode = self.recorder = self.final_episode = self.subtest = None
        self.running = self.summary_record = self.unreported = None
        self.subtest_errors.clear()
        self.subtest_failures.clear()

    @property
    def is_evaluation(self) -> bool:
        """Whether its assertions are measured and fail no test."""
        return self.initial_episode is not None and self.initial_episode.mode == "evaluation"

    @property
    def has_counted_assertion(self) -> bool:
        """Whether an assert passed; always False for an episode that needs no evidence."""
        is_counted = (
            self.initial_episode is not None and self.initial_episode.evidence == "required"
        )
        return is_counted and self.running is not None and self.running.asserted


EPISODE = pytest.StashKey[EpisodeItem]()

REPORTED_EPISODE = pytest.StashKey["Episode | None"]()
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
