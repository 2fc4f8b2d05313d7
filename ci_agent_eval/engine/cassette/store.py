"""The cassettes of one process: opened for an episode, written at its end.

There is one file for each scenario, read and written as a whole. Several processes may write takes
of one scenario at once (xdist's workers do). Each locks the folder while it reads the file, adds
its take and replaces the file. The kernel holds the lock: it leaves no file, and ends with a killed
process.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.engine.cassette.document import (
    Cassette,
    OldCassetteError,
    Take,
    parse_cassette,
    render_cassette,
)
from ci_agent_eval.engine.cassette.misses import ReplaceRule
from ci_agent_eval.engine.cassette.players import TrafficPlayer, close_replay
from ci_agent_eval.engine.cassette.session import CassetteMode, CassetteSession
from ci_agent_eval.engine.result import CassetteCounts
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor
from ci_agent_eval.storage.regular_file import open_regular, replace_file

MAX_CACHED = 128
"""Number of cassettes kept in memory; a suite may have thousands."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_NAME_LENGTH = 80


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
    _open: dict[str, CassetteSession] = field(default_factory=dict, init=False)
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
        scenario = self.redactor.text(scenario + case)
        path = build_cassette_path(folder, scenario)
        session = self._open[episode_id] = CassetteSession(
            Cassette(scenario) if self.mode == "off" else self._load(path, scenario),
            self.mode,
            self._redact,
            iteration,
            f"cassette {path}",
            rules=self.rules,
            has_tools=self.has_tools,
        )

        session.player = None if self.mode == "off" else TrafficPlayer(session)

        def save() -> None:
            if (take := session.take) is not None:
                store_take(path, scenario, iteration, take)

        def save_if_possible() -> None:
            with suppress(InputError):  # raised again at the episode's end
                save()

        session.save = save_if_possible
        is_closed = self.mode == "replay"
        try:
            with close_replay(self.allowed_hosts) if is_closed else nullcontext():
                yield session
        except Exception:
            save()
            raise
        else:
            save()
        finally:
            del self._open[episode_id]

    def get_counts(self, episode_id: str) -> CassetteCounts:
        """Return the counts of an open episode; zeros for any other."""
        session = self._open.get(episode_id)
        return CassetteCounts() if session is None else session.counts

    def get_session(self, episode_id: str) -> CassetteSession:
        """Return the session of an open episode. Raises InputError."""
        if episode_id not in self._open:
            raise InputError(
                f"no cassette is open for episode {episode_id!r}; open it with "
                "`CassetteStore.episode(...)` before the agent runs"
            )
        return self._open[episode_id]

    def add_secrets(self, secrets: frozenset[str]) -> None:
        """Redact these values in all recordings, including those of open episodes."""
        self.redactor = self.redactor.with_secrets(secrets)

    def _redact(self, value: Any) -> Any:
        return self.redactor.value(value)

    def _load(self, path: Path, scenario: str) -> Cassette:
        """Load a cassette, from memory if its file has not changed."""
        state = _get_file_state(path)
        known = self._read.pop(path, None)
        if known is None or state is None or known[0] != state:
            is_replaced = self.mode == "record"
            known = (state, load_cassette(path, scenario, is_replaced=is_replaced))
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


def build_cassette_path(folder: Path, scenario: str) -> Path:
    """Return the path of a scenario's cassette, unique for each scenario."""
    name = _UNSAFE.sub("_", scenario).lstrip(".")[:_MAX_NAME_LENGTH]
    # Some file systems ignore case.
    if name != scenario or name != name.lower():
        name += "-" + hashlib.sha256(scenario.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return folder / f"{name}.yaml"


def load_cassette(path: Path, scenario: str, *, is_replaced: bool = False) -> Cassette:
    """Load a cassette; a missing file gives an empty one. Raises InputError.

    With `is_replaced` a file of an old format gives an empty one, too.
    """
    try:
        with open_regular(path, follow=True) as file:
            text = file.read().decode()
    except FileNotFoundError:
        return Cassette(scenario)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cassette {path} cannot be read: {error}") from error
    try:
        return parse_cassette(text, str(path))
    except OldCassetteError:
        if is_replaced:
            return Cassette(scenario)
        raise


def store_take(path: Path, scenario: str, iteration: int, take: Take) -> None:
    """Replace the take of an iteration; safe for concurrent writers. Raises InputError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _lock_folder(path.parent):
            old = load_cassette(path, scenario, is_replaced=True)
            new = Cassette(scenario, old.takes).with_take(iteration, take)
            with replace_file(path) as file:
                file.write(clean_text(render_cassette(new)))
    except OSError as error:
        raise InputError(f"cassette {path} cannot be written: {error}") from error


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
