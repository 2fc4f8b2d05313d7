"""`agent-eval scenarios`: the scenarios that a collection finds, written to a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.results import ListedScenario, ScenarioListing, Session
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.exclusions import CollectionOutcome
from ci_agent_eval.pytest_plugin.collection.removed_episodes import build_collected_episode
from ci_agent_eval.pytest_plugin.episodes.model_redaction import redact_model
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.redaction import Redactor


class ScenarioListWriter:
    """Watches a collection and writes the scenarios it found; a plugin object of its own."""

    def __init__(self, config: pytest.Config) -> None:
        self._path = Path(str(config.option.episode_list))
        self._redactor = Redactor.from_environ(os.environ)
        self._places = RepositoryPaths.of(config.rootpath, os.environ)
        self._collection = CollectionOutcome(config, self._redactor)
        self._items: Sequence[pytest.Item] = ()

    @classmethod
    def start(cls, config: pytest.Config) -> None:
        """Listen from here on."""
        config.pluginmanager.register(cls(config), "ci_agent_eval_listing")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what could not be collected, and what was skipped."""
        self._collection.add(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the episodes that were selected."""
        self._items = [item for item in session.items if detection.is_episode(item)]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file."""
        config = session.config
        watching = config.pluginmanager.get_plugin(options.REMOVED_EPISODES)
        found = Session(
            state="finished",
            exit_status=int(session.exitstatus),
            selected=len(self._items),
            removed=() if watching is None else watching.removed(self._items),
        )
        update = self._collection.update()
        listing = ScenarioListing(
            session=self._collection.restrict(found).model_copy(update=update),
            scenarios=tuple(self._scenarios()),
        )
        text = canonical_json(redact_model(listing, self._redactor))
        self._path.write_text(text, encoding="ascii")

    def _scenarios(self) -> Iterator[ListedScenario]:
        for item in self._items:
            draft, (file, _) = build_collected_episode(item), self._places.of_item(item)
            yield ListedScenario(
                scenario_id=draft.scenario_id,
                gate=draft.gate,
                file=file,
                was=draft.was,
                named_at_run_time=detection.returns_episode(item),
            )
