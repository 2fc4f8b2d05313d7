"""The cassettes of one process: opened for an episode, written when it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai.models import Model

from ci_agent_eval.engine.cassette.document import Cassette
from ci_agent_eval.engine.cassette.files import build_cassette_path, load_cassette, store_take
from ci_agent_eval.engine.cassette.model import CassetteModel
from ci_agent_eval.engine.cassette.session import CassetteMode, CassetteSession
from ci_agent_eval.engine.declarations import Agent
from ci_agent_eval.engine.result import CassetteCounts
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor


@dataclass(frozen=True, slots=True)
class _OpenCassette:
    """Where an episode's tape came from, and goes to."""

    path: Path
    scenario: str
    tape: CassetteSession


MAX_CACHED = 128
"""Cassettes that stay in memory once they were read; a suite may have thousands."""


@dataclass
class CassetteStore:
    """Opens a tape for each episode; what was recorded is written when the episode closes."""

    mode: CassetteMode
    redactor: Redactor
    _open: dict[str, _OpenCassette] = field(default_factory=dict, init=False)
    _read: dict[Path, tuple[object, Cassette]] = field(default_factory=dict, init=False)

    @contextmanager
    def episode(
        self, episode_id: str, folder: Path, scenario: str, iteration: int = 1
    ) -> Iterator[CassetteSession]:
        """Hold an episode's tape; write what it recorded at the end, unless it was interrupted.

        A failed test is no interruption. `folder` holds the suite's cassettes. Raises
        InputError for a cassette that cannot be read or written.
        """
        tape = self.open(episode_id, folder, scenario, iteration)
        try:
            yield tape
        except Exception:
            self.close(episode_id)
            raise
        except BaseException:
            self.discard(episode_id)
            raise
        self.close(episode_id)

    def open(
        self, episode_id: str, folder: Path, scenario: str, iteration: int = 1
    ) -> CassetteSession:
        """Open a tape for an episode. Raises InputError."""
        scenario = self.redactor.text(scenario)
        path = build_cassette_path(folder, scenario)
        cassette = Cassette(scenario) if self.mode == "off" else self._load(path, scenario)
        tape = CassetteSession(cassette, self.mode, self._redacted, iteration, f"cassette {path}")
        self._open[episode_id] = _OpenCassette(path, scenario, tape)
        return tape

    def close(self, episode_id: str) -> CassetteCounts:
        """Write what an episode recorded, and forget the episode. Raises InputError."""
        place = self._open.pop(episode_id)
        take = place.tape.take
        if take is not None:
            store_take(place.path, place.scenario, place.tape.iteration, take)
        return place.tape.counts

    def discard(self, episode_id: str) -> None:
        """Forget an episode, and what it recorded."""
        self._open.pop(episode_id, None)

    def wrap(self, model: Model, agent: Agent, episode_id: str) -> Model:
        """Return the model for one run of an open episode. Raises InputError."""
        del agent
        if self.mode == "off" and episode_id not in self._open:
            return model
        return CassetteModel(model, self.tape(episode_id))

    def counts(self, episode_id: str) -> CassetteCounts:
        """Return what the recording did for an open episode; nothing for any other."""
        place = self._open.get(episode_id)
        return CassetteCounts() if place is None else place.tape.counts

    def tape(self, episode_id: str) -> CassetteSession:
        """Return the tape of an open episode, for a model of one's own. Raises InputError."""
        if episode_id not in self._open:
            raise InputError(
                f"no cassette is open for episode {episode_id!r}; open it with "
                "`CassetteShelf.episode(...)` before the agent runs"
            )
        return self._open[episode_id].tape

    def learn(self, secrets: frozenset[str]) -> None:
        """Keep these values out of every recording, also of the episodes that are open."""
        self.redactor = self.redactor.with_secrets(secrets)

    def _redacted(self, value: Any) -> Any:
        return self.redactor.value(value)

    def _load(self, path: Path, scenario: str) -> Cassette:
        """Read a file once for all the iterations that find it unchanged."""
        state = _get_file_state(path)
        known = self._read.get(path)
        if known is None or state is None or known[0] != state:
            known = (state, load_cassette(path, scenario))
            self._read.pop(path, None)
            self._read[path] = known
            if len(self._read) > MAX_CACHED:
                del self._read[next(iter(self._read))]
        return known[1]


def _get_file_state(path: Path) -> object:
    try:
        found = os.stat(path)  # noqa: PTH116 - one call, and a miss is no error here
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)
