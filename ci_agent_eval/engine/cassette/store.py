"""The cassettes of one process: opened for an episode, written at its end."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci_agent_eval.engine.cassette.document import Cassette
from ci_agent_eval.engine.cassette.files import build_cassette_path, load_cassette, store_take
from ci_agent_eval.engine.cassette.rules import ReplaceRule
from ci_agent_eval.engine.cassette.session import CassetteMode, CassetteSession
from ci_agent_eval.engine.cassette.traffic_player import close_replay
from ci_agent_eval.engine.result import CassetteCounts
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor


@dataclass(frozen=True, slots=True)
class _OpenCassette:
    """The cassette session of an episode, with its file."""

    path: Path
    scenario: str
    session: CassetteSession

    def save(self) -> None:
        """Write the take, if there is one. Raises InputError."""
        if (take := self.session.take) is not None:
            store_take(self.path, self.scenario, self.session.iteration, take)

    def save_if_possible(self) -> None:
        """Write the take so far; a failure is raised again at the episode's end."""
        with suppress(InputError):
            self.save()


MAX_CACHED = 128
"""Number of cassettes kept in memory; a suite may have thousands."""


@dataclass
class CassetteStore:
    """Opens a cassette session for each episode and writes its recordings at the end."""

    mode: CassetteMode
    redactor: Redactor
    rules: Sequence[ReplaceRule] = ()
    """Replacements in requests, before their keys are made."""
    has_tools: bool = False
    """Whether tool calls are recorded and replayed, too."""
    allowed_hosts: Collection[str] = ()
    """Hosts beside this machine that tests may connect to in replay."""
    _open: dict[str, _OpenCassette] = field(default_factory=dict, init=False)
    _read: dict[Path, tuple[object, Cassette]] = field(default_factory=dict, init=False)

    @contextmanager
    def episode(
        self, episode_id: str, folder: Path, scenario: str, iteration: int = 1, case: str = ""
    ) -> Iterator[CassetteSession]:
        """Open an episode's session; write its recordings at the end, unless interrupted.

        A failed test is not an interruption. `folder` holds the suite's cassettes, `case` tells
        the cases of a parametrized test apart that are one scenario. In replay,
        connections beyond this machine are refused meanwhile. Raises
        InputError for a cassette that cannot be read or written.
        """
        session = self.open(episode_id, folder, scenario, iteration, case)
        is_closed = self.mode == "replay"
        try:
            with close_replay(self.allowed_hosts) if is_closed else nullcontext():
                yield session
        except Exception:
            self.close(episode_id)
            raise
        except BaseException:
            self.discard(episode_id)
            raise
        self.close(episode_id)

    def open(
        self, episode_id: str, folder: Path, scenario: str, iteration: int = 1, case: str = ""
    ) -> CassetteSession:
        """Open the session of an episode. Raises InputError."""
        scenario = self.redactor.text(scenario + case)
        path = build_cassette_path(folder, scenario)
        cassette = Cassette(scenario) if self.mode == "off" else self._load(path, scenario)
        source = f"cassette {path}"
        session = CassetteSession(
            cassette,
            self.mode,
            self._redact,
            iteration,
            source,
            rules=self.rules,
            has_tools=self.has_tools,
        )
        opened = self._open[episode_id] = _OpenCassette(path, scenario, session)
        session.save = opened.save_if_possible
        return session

    def close(self, episode_id: str) -> CassetteCounts:
        """Write the recordings of an episode and remove it. Raises InputError."""
        opened = self._open.pop(episode_id)
        opened.save()
        return opened.session.counts

    def discard(self, episode_id: str) -> None:
        """Remove an episode without writing its recordings."""
        self._open.pop(episode_id, None)

    def get_counts(self, episode_id: str) -> CassetteCounts:
        """Return the counts of an open episode; zeros for any other."""
        opened = self._open.get(episode_id)
        return CassetteCounts() if opened is None else opened.session.counts

    def get_session(self, episode_id: str) -> CassetteSession:
        """Return the session of an open episode. Raises InputError."""
        if episode_id not in self._open:
            raise InputError(
                f"no cassette is open for episode {episode_id!r}; open it with "
                "`CassetteStore.episode(...)` before the agent runs"
            )
        return self._open[episode_id].session

    def add_secrets(self, secrets: frozenset[str]) -> None:
        """Redact these values in all recordings, including those of open episodes."""
        self.redactor = self.redactor.with_secrets(secrets)

    def _redact(self, value: Any) -> Any:
        return self.redactor.value(value)

    def _load(self, path: Path, scenario: str) -> Cassette:
        """Load a cassette, from memory if its file has not changed."""
        state = _get_file_state(path)
        known = self._read.get(path)
        if known is None or state is None or known[0] != state:
            is_replaced = self.mode == "record"
            known = (state, load_cassette(path, scenario, is_replaced=is_replaced))
            self._read.pop(path, None)
            self._read[path] = known
            if len(self._read) > MAX_CACHED:
                del self._read[next(iter(self._read))]
        return known[1]


def _get_file_state(path: Path) -> object:
    try:
        stat = os.stat(path)  # noqa: PTH116 - one call, and a miss is no error here
    except OSError:
        return None
    return (stat.st_ino, stat.st_mtime_ns, stat.st_size)
