"""The report directory: journals while the run lasts, then the results merged from them."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import (
    EVAL_RESULTS_NAME,
    JOURNAL_DIR,
    JUNIT_NAME,
    RESULTS_NAME,
    SESSION_NAME,
    JournalLine,
    RemovedScenario,
    Session,
    Shard,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.evaluation_file import is_own_evaluation_file
from ci_agent_eval.storage.regular_file import open_regular, replace_file

EpisodeKey = tuple[str, str, int, int]
"""`Episode.key`: scenario, node id, iteration, attempt."""

_JOURNAL_NAME = re.compile(r"(?:main|gw\d+)\.jsonl")
_RESULTS_START = b'{"schema_version":'
_JOURNAL_START = b'{"episode":'
_LARGEST_SESSION = 16 * 1024 * 1024
_GITIGNORE = "# Created by agent-eval\n*\n"


@dataclass(frozen=True, slots=True)
class Journal:
    """One process's episodes, a line each, on disk the moment they are written."""

    path: Path

    def write(self, line: JournalLine) -> None:
        """Append a line: one unbuffered write, so that a kill leaves whole lines behind."""
        text = canonical_json(line).encode("ascii") + b"\n"
        with FileIO(self.path, "a") as file:
            file.write(text)


class _LinePlace(NamedTuple):
    """Where a line stands, in bytes."""

    file: Path
    start: int
    length: int
    has_ended: bool
    """It tells how the episode ended."""


@dataclass(frozen=True, slots=True)
class MergedJournals:
    """The one line of each episode that counts, by its place: the lines may be large, and many."""

    places: Mapping[EpisodeKey, _LinePlace]
    unreadable: tuple[str, ...]
    """The lines that could not be read, as `episodes/main.jsonl:2`."""

    def episodes(self) -> Iterator[Episode]:
        """Read the episodes in the order of their keys, one at a time."""
        with ExitStack() as stack:
            files: dict[Path, BinaryIO] = {}
            for key in sorted(self.places):
                place = self.places[key]
                if place.file not in files:
                    files[place.file] = stack.enter_context(place.file.open("rb"))
                files[place.file].seek(place.start)
                raw = files[place.file].read(place.length)
                yield JournalLine.model_validate_json(raw).episode


@dataclass(frozen=True, slots=True)
class ReportFolder:
    """The files of one run."""

    path: Path

    def prepare(self, *, with_junit: bool = False) -> None:
        """Make the folder, once nothing of others can be overwritten in it.

        A folder that is made here, or was empty, is kept out of git. Raises InputError,
        with nothing touched, where a file of one of our names is not ours; `with_junit`
        counts `junit.xml` among them, which else pytest alone writes.
        """
        try:
            self._check_ownership(with_junit=with_junit)
            is_new = not self.path.exists() or not any(self.path.iterdir())
            self.path.mkdir(parents=True, exist_ok=True)
            if is_new:
                (self.path / ".gitignore").write_text(_GITIGNORE, encoding="utf-8", newline="\n")
        except (FileExistsError, NotADirectoryError):
            raise InputError(
                f"{self.path}: a file is in the way, so that no folder can be made there; "
                "name another report directory"
            ) from None
        except OSError as error:
            raise InputError(
                f"{error.filename or self.path}: cannot be used ({error.strerror}); "
                "make it accessible, or name another report directory"
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the folder, which is there. Raises InputError where one is in it.

        The lock is on the folder itself, and the system frees that of a process that dies. A file
        system that knows no locks keeps nobody out.
        """
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with suppress(OSError):
                _lock_folder(descriptor, self.path)
            yield
        finally:
            os.close(descriptor)

    def clear(self, *, with_junit: bool = False) -> None:
        """Prepare the folder and remove what a former run of this program left in it.

        Raises InputError as `prepare` does, and OSError where a file cannot be removed.
        """
        self.prepare(with_junit=with_junit)
        journals = list(self._list_journals())
        for file in [*journals, *self._list_documents(with_junit=with_junit)]:
            file.unlink(missing_ok=True)
        (self.path / JOURNAL_DIR).mkdir(exist_ok=True)

    def _check_ownership(self, *, with_junit: bool) -> None:
        """Look whether every file of one of our names is ours."""
        if not self.path.is_dir():
            return
        for file in [*self._list_documents(with_junit=with_junit), *self._list_journals()]:
            if os.path.lexists(file) and not self._is_ours(file):
                raise InputError(
                    f"{file}: was not written by this program and would be overwritten; "
                    "move it, or name another report directory"
                )

    def _list_documents(self, *, with_junit: bool) -> Iterator[Path]:
        # The session goes last: it is what says whose the JUnit file is.
        junit = (JUNIT_NAME,) if with_junit else ()
        names = (RESULTS_NAME, EVAL_RESULTS_NAME, *junit, SESSION_NAME)
        return (self.path / name for name in names)

    def _is_ours(self, file: Path) -> bool:
        """Tell by what is in it."""
        if not file.is_file():
            return False
        if file.name == JUNIT_NAME:
            return self._is_ours(self.path / SESSION_NAME)
        if file.name == SESSION_NAME:
            return _is_session(file)
        if file.name == EVAL_RESULTS_NAME:
            return is_own_evaluation_file(file)
        start = _RESULTS_START if file.name == RESULTS_NAME else _JOURNAL_START
        with file.open("rb") as opened:
            first = opened.read(len(start))
        # A journal may be empty, or cut off: its writer was killed.
        return first == start or (file.suffix == ".jsonl" and start.startswith(first))

    def _list_journals(self) -> list[Path]:
        folder = self.path / JOURNAL_DIR
        if not os.path.lexists(folder):
            return []
        return [file for file in sorted(folder.iterdir()) if _JOURNAL_NAME.fullmatch(file.name)]

    def journal(self, worker: str) -> Journal:
        """Return the journal of a worker, or of `main`."""
        return Journal(self.path / JOURNAL_DIR / f"{worker}.jsonl")

    def write_session(self, session: Session) -> None:
        """Write `session.json` in one step: a reader sees the old or the new one."""
        _replace_file(self.path / SESSION_NAME, [canonical_json(session) + "\n"])

    def session(self) -> Session:
        """Read `session.json`."""
        return Session.model_validate_json((self.path / SESSION_NAME).read_bytes())

    def note_selected(
        self,
        count: int,
        deselected: int,
        shard: Shard | None = None,
        removed: tuple[RemovedScenario, ...] = (),
    ) -> None:
        """Say in `session.json` what is to run; every worker says the same."""
        session = self.session()
        if session.state == "running" and session.selected is None:
            update = {
                "selected": count,
                "deselected": deselected,
                "shard": shard,
                "removed": removed,
            }
            self.write_session(session.model_copy(update=update))

    def note_process_status(self, status: int) -> None:
        """Say in `session.json` what pytest's process ended with.

        What cannot be read or written stays as it is: whoever reads it says so, and misses
        the status in a session that was to have one.
        """
        with suppress(OSError, ValueError):  # pydantic's errors are such
            with open_regular(self.path / SESSION_NAME) as file:
                session = Session.model_validate_json(file.read(_LARGEST_SESSION))
            self.write_session(session.model_copy(update={"process_status": status}))

    def write_results(self, suite: str, *, complete: bool = True) -> tuple[str, ...]:
        """Merge the journals into `results.json`; return what could not be read, by its place.

        `complete` is False where the run did not come to its end.
        """
        merged = self.merged()
        complete = complete and not merged.unreadable
        ordered = map(canonical_json, merged.episodes())
        _replace_file(self.path / RESULTS_NAME, render_results(suite, ordered, complete=complete))
        return merged.unreadable

    def merged(self) -> MergedJournals:
        """Find one line of each episode: an ended one before a started one, then the last."""
        places: dict[EpisodeKey, _LinePlace] = {}
        unreadable: list[str] = []
        for file in self._list_journals():
            for number, (start, raw) in enumerate(_iter_lines(file), start=1):
                try:
                    line = JournalLine.model_validate_json(raw)
                except ValueError:
                    unreadable.append(f"{JOURNAL_DIR}/{file.name}:{number}")
                    continue
                if line.started_key is not None:
                    places.pop(line.started_key, None)
                key, has_ended = line.episode.key, line.event == "ended"
                if has_ended or key not in places or not places[key].has_ended:
                    places[key] = _LinePlace(file, start, len(raw), has_ended)
        return MergedJournals(places, tuple(unreadable))


def _iter_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each line, and the byte it starts at, as `bytes.splitlines` tells lines apart."""
    start = 0
    with path.open("rb") as file:
        for chunk in file:
            for raw in chunk.splitlines(keepends=True):
                yield start, raw.rstrip(b"\r\n")
                start += len(raw)


def _lock_folder(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"{path}: another run is writing its results there; wait until it has ended, or name "
            "another report directory"
        ) from None


def _is_session(file: Path) -> bool:
    try:
        Session.model_validate_json(file.read_bytes())
    except ValueError:  # pydantic's errors are such
        return False
    return True


def _replace_file(path: Path, pieces: Iterable[str]) -> None:
    with replace_file(path) as file:
        file.writelines(pieces)
