"""Detection of collected episodes that were deselected by something other than the command line.

Made only for runs that write a report or list their scenarios.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

import pytest

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode, Mode
from ci_agent_eval.contract.results import ListedScenario, RemovedScenario, ScenarioListing, Session
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.detection import is_episode
from ci_agent_eval.pytest_plugin.collection.exclusions import CollectionOutcome
from ci_agent_eval.pytest_plugin.collection.iterations import describe_case
from ci_agent_eval.pytest_plugin.episodes.marker import build_episode_from_marker
from ci_agent_eval.pytest_plugin.episodes.model_redaction import redact_model
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.episodes.simulations import get_default_scenario
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import is_evaluation
from ci_agent_eval.pytest_plugin.parts import get_parts
from ci_agent_eval.recording import build_initial_episode
from ci_agent_eval.redaction import Redactor

_HOOK_PACKAGES = ("pluggy", "ci_agent_eval")
"""Packages whose frames are between a hook and its caller."""


class RemovedEpisodes:
    """Watches the collection for items and for the code that deselects them."""

    def __init__(self, config: pytest.Config) -> None:
        self._repo = RepositoryPaths.find(config.rootpath, os.environ)
        self._items: list[pytest.Item] = []
        self._excluded: Counter[str] = Counter()
        self._removers: dict[str, str] = {}

    def note_collected(self, item: pytest.Item) -> None:
        """Keep every item, before a plugin can deselect it."""
        self._items.append(item)

    def note_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Distinguish deselection by pytest's own options from other deselection."""
        caller = _find_hook_caller(sys._getframe(1))  # noqa: SLF001 - inspect.stack reads whole files
        name = str(caller.f_globals.get("__name__", ""))
        if name.partition(".")[0] == "_pytest":
            self._excluded.update(item.nodeid for item in items)
            return
        remover = self._repo.relative(caller.f_code.co_filename) or name
        self._removers.update((item.nodeid, remover) for item in items)

    def list_scenarios(self, selected: Sequence[pytest.Item]) -> tuple[RemovedScenario, ...]:
        """Return the scenarios whose episodes are neither selected nor excluded on purpose."""
        expected = Counter(item.nodeid for item in selected) + self._excluded
        found: Counter[tuple[str, str, str]] = Counter()
        for item in self._items:
            if expected[item.nodeid]:
                expected[item.nodeid] -= 1
            elif is_episode(item):
                episode = build_collected_episode(item)
                found[episode.scenario_id, episode.gate, self._removers.get(item.nodeid, "")] += 1
        return tuple(_build_removed_scenarios(found))


def _build_removed_scenarios(found: Counter[tuple[str, str, str]]) -> Iterator[RemovedScenario]:
    for (scenario, gate, remover), number in sorted(found.items()):
        values = {
            "scenario_id": scenario,
            "gate": gate,
            "iterations": number,
            "by": remover or None,
        }
        yield RemovedScenario.model_validate(values)


def build_collected_episode(item: pytest.Item) -> Episode:
    """Build an item's episode from its marker; from its scenario alone if the marker is invalid."""
    mode: Mode = "evaluation" if is_evaluation(item) else "strict"
    try:
        return build_episode_from_marker(item, scenario_id=get_default_scenario(item), mode=mode)
    except InputError:
        return build_initial_episode(get_default_scenario(item), mode=mode)


def _find_hook_caller(frame: FrameType | None) -> FrameType:
    """Return the innermost frame that called a hook."""
    assert frame is not None, "pytest is always among the callers"  # noqa: S101 - of any hook
    name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return _find_hook_caller(frame.f_back) if name in _HOOK_PACKAGES else frame


class ScenarioListWriter:
    """Writes the scenarios of a collection to a file."""

    def __init__(self, config: pytest.Config) -> None:
        self._path = Path(str(config.option.episode_list))
        self._redactor = Redactor.from_environ(os.environ)
        self._repo = RepositoryPaths.find(config.rootpath, os.environ)
        self._collection = CollectionOutcome(config, self._redactor)
        self._items: Sequence[pytest.Item] = ()

    def note_collected(self, report: pytest.CollectReport) -> None:
        """Keep files that could not be collected or were skipped."""
        self._collection.add(report)

    def select(self, session: pytest.Session) -> None:
        """Keep the selected episodes."""
        self._items = [item for item in session.items if detection.is_episode(item)]

    def write(self, session: pytest.Session) -> None:
        """Write the file."""
        config = session.config
        removed = get_parts(config).removed
        found = Session(
            state="finished",
            exit_status=int(session.exitstatus),
            selected=len(self._items),
            removed=() if removed is None else removed.list_scenarios(self._items),
        )
        update = self._collection.list_session_fields()
        listing = ScenarioListing(
            session=self._collection.add_restrictions(found).model_copy(update=update),
            scenarios=tuple(self._list_scenarios()),
        )
        text = canonical_json(redact_model(listing, self._redactor))
        self._path.write_text(text, encoding="ascii")

    def _list_scenarios(self) -> Iterator[ListedScenario]:
        for item in self._items:
            episode, (file, _) = build_collected_episode(item), self._repo.locate_item(item)
            yield ListedScenario(
                scenario_id=episode.scenario_id,
                gate=episode.gate,
                file=file,
                was=episode.was,
                named_at_run_time=detection.returns_episode(item),
                case=describe_case(item),
            )
