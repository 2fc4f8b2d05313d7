"""`agent-eval scenarios`: write the collected scenarios to a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.results import ListedScenario, ScenarioListing, Session
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.exclusions import CollectionOutcome
from ci_agent_eval.pytest_plugin.collection.iterations import describe_case
from ci_agent_eval.pytest_plugin.collection.removed_episodes import build_collected_episode
from ci_agent_eval.pytest_plugin.episodes.model_redaction import redact_model
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.parts import get_parts
from ci_agent_eval.redaction import Redactor


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
