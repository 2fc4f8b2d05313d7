"""The journal that a process writes of its episodes, without secrets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, TypeVar

import pytest

from ci_agent_eval.contract.base import FrozenModel
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.results import JournalLine
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.episodes.model_redaction import redact_model
from ci_agent_eval.redaction import Redactor
from ci_agent_eval.storage.run_folder import ReportFolder

Model = TypeVar("Model", bound=FrozenModel)


class EpisodeFiles:
    """The files of one process; without a report directory nothing is written."""

    def __init__(
        self,
        redactor: Redactor,
        folder: ReportFolder | None,
        worker: str,
        root: Path,
    ) -> None:
        self._redactor = redactor
        self._root = f"{root}{os.sep}"
        self._redacted: tuple[Redactor, Episode, Episode] | None = None
        self._folder = folder
        self._journal = None if folder is None else folder.journal(worker)
        self.has_own_secrets = False
        """Whether this process has secrets that its parent process does not know."""

    @classmethod
    def for_process(cls, config: pytest.Config, root: Path) -> EpisodeFiles:
        """Open the files of the process that `config` belongs to; `root` is the repository's."""
        directory, worker = options.get_report_dir(config), options.get_worker_id(config)
        folder = None if directory is None else ReportFolder(directory)
        return cls(Redactor.from_environ(os.environ), folder, worker, root)

    def add_secrets(self, secrets: frozenset[str]) -> None:
        """Redact these values, too, from all later output."""
        self._redactor = self._redactor.with_secrets(secrets)
        self.has_own_secrets = True

    def redact(self, text: str) -> str:
        """Return a text without secrets."""
        return self._redactor.text(text)

    def redact_model(self, model: Model) -> Model:
        """Return a model of the contract without secrets."""
        return redact_model(model, self._redactor)

    def redact_episode(self, episode: Episode) -> Episode:
        """Return the redacted episode, cached because the journal and two reports use it."""
        cached = self._redacted
        if cached is None or cached[0] is not self._redactor or cached[1] is not episode:
            redacted = redact_model(self._shorten_paths(episode), self._redactor)
            cached = (self._redactor, episode, redacted)
            self._redacted = cached
        return cached[2]

    def _shorten_paths(self, episode: Episode) -> Episode:
        """Return the episode with reasons that name files from the repository's root."""
        found: tuple[Episode | Assertion, ...] = (episode, *episode.assertions)
        if not any(self._root in (one.reason or "") for one in found):
            return episode
        shortened = [
            one.model_copy(update={"reason": one.reason and one.reason.replace(self._root, "")})
            for one in episode.assertions
        ]
        reason = episode.reason and episode.reason.replace(self._root, "")
        return episode.model_copy(update={"reason": reason, "assertions": tuple(shortened)})

    def write_selected(self, **fields: object) -> None:
        """Write how many episodes are selected, and which are not."""
        if self._folder is not None:
            self._folder.note_selected(fields)

    def write(
        self, event: Literal["started", "ended"], episode: Episode, initial: Episode | None = None
    ) -> None:
        """Write a line of the journal; `initial` is the episode as it was when it started."""
        if self._journal is None:
            return
        is_renamed = initial is not None and initial.scenario_id != episode.scenario_id
        started_as = self.redact(initial.scenario_id) if initial and is_renamed else None
        line = JournalLine(event=event, episode=self.redact_episode(episode), started_as=started_as)
        self._journal.write(line)
