"""The finished tests of a run that did not end, for the attempt that continues it.

A test is finished once its teardown has ended and its last episode passed or failed. Errors and
skipped episodes are not kept: they judged nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from errno import ENOSPC
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import (
    FINISHED_SUFFIX,
    JOURNAL_DIR,
    KEPT_NAME,
    SESSION_NAME,
    UNKNOWN_DIGEST,
    Digests,
    JournalLine,
    Session,
    StartConditions,
)
from ci_agent_eval.contract.resume import FinishedTest
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import open_regular, replace_file

TestKey = tuple[str, int]
"""Node id and iteration."""

_MAX_SESSION_BYTES = 16 * 1024 * 1024
_MAX_JOURNAL_BYTES = 2 * 1024**3
_RATED = frozenset({"passed", "failed"})


def note_finished(report_dir: Path, worker: str, test: FinishedTest) -> None:
    """Append a finished test in one write, so that a killed process leaves whole lines.

    Raises OSError, also if the disk has room for a part of the line only, which readers ignore.
    """
    line = canonical_json(test).encode("ascii") + b"\n"
    with FileIO(report_dir / JOURNAL_DIR / f"{worker}{FINISHED_SUFFIX}", "a") as file:
        if file.write(line) != len(line):
            raise OSError(ENOSPC, "the line is cut off", file.name)


def list_kept_scenarios(report_dir: Path) -> list[str]:
    """Return the scenario of each test whose episode a run has kept of an earlier attempt."""
    return [test.kept for test in _read_finished(report_dir) if test.kept is not None]


class _Attempt(NamedTuple):
    """The last line about an attempt at a test, as its position in a file, in bytes."""

    has_ended: bool
    is_rated: bool
    path: Path
    start: int
    length: int

    def read_line(self) -> str:
        with open_regular(self.path) as file:
            file.seek(self.start)
            return file.read(self.length).decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """The report folder that an earlier attempt at a run left."""

    folder: Path
    session: Session
    conditions: StartConditions
    """With all variables and files that its finished tests depend on."""
    tests: Mapping[TestKey, Mapping[int, _Attempt]]
    """Its finished tests, with the attempts at each."""

    @classmethod
    def load(cls, folder: Path) -> EarlierAttempt | None:
        """Load a folder; None: no run left anything in it.

        Raises InputError with one sentence if a file in it is not whole or not regular.
        """
        try:
            session = _read_session(folder / SESSION_NAME)
            if session is None:
                return None
            if session.conditions is None:
                raise InputError("it does not say under which conditions it ran")
            return cls._load(folder, session, session.conditions)
        except OSError as error:
            name = Path(str(error.filename or folder)).name
            raise InputError(f"its file {name!a} cannot be read: {error.strerror}") from None

    @classmethod
    def _load(cls, folder: Path, session: Session, conditions: StartConditions) -> EarlierAttempt:
        variables: Digests = dict(conditions.variables)
        files: Digests = dict(conditions.files)
        finished = set()
        for test in _read_finished(folder):
            finished.add((test.nodeid, test.iteration))
            _add_digests(variables, test.variables)
            _add_digests(files, test.files)
        found, started = _read_journals(folder)
        kept = _read_kept(folder / JOURNAL_DIR / KEPT_NAME)
        # One that ran again has another result, even if that is none.
        tests = {key: attempts for key, attempts in kept.items() if key not in started}
        tests |= {key: found[key] for key in found.keys() & finished if _is_rated(found[key])}
        known = {"variables": variables, "files": files}
        return cls(folder, session, conditions.model_copy(update=known), tests)

    def write_kept(self, report_dir: Path) -> None:
        """Write its finished tests for the run that continues it, atomically."""
        folder = report_dir / JOURNAL_DIR
        folder.mkdir(parents=True, exist_ok=True)
        with replace_file(folder / KEPT_NAME) as file:
            for key, attempts in sorted(self.tests.items()):
                for _, attempt in sorted(attempts.items()):
                    file.write(f"{json.dumps(key)}\t{attempt.read_line()}\n")


@dataclass(frozen=True, slots=True)
class KeptTests:
    """The tests that a run keeps of earlier attempts, as positions in its own file."""

    path: Path
    _places: dict[TestKey, list[tuple[int, int]]] = field(default_factory=dict)

    @classmethod
    def find(cls, report_dir: Path) -> KeptTests:
        """Return the tests in a run's file; none without one."""
        found = cls(report_dir / JOURNAL_DIR / KEPT_NAME)
        with suppress(FileNotFoundError), found.path.open("rb") as file:
            at = 0
            for line in file:
                head = line.partition(b"\t")[0]
                nodeid, iteration = json.loads(head)
                place = at + len(head) + 1, len(line) - len(head) - 1
                found._places.setdefault((nodeid, iteration), []).append(place)
                at += len(line)
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def read(self, key: TestKey) -> list[Episode]:
        """Return the episodes of a test, one for each attempt."""
        episodes = []
        with self.path.open("rb") as file:
            for start, length in self._places[key]:
                file.seek(start)
                episodes.append(JournalLine.model_validate_json(file.read(length)).episode)
        return episodes


def _add_digests(known: Digests, found: Digests) -> None:
    for name, digest in found.items():
        if known.setdefault(name, digest) != digest:
            known[name] = UNKNOWN_DIGEST


def _read_session(path: Path) -> Session | None:
    try:
        with open_regular(path) as file:
            return Session.model_validate_json(file.read(_MAX_SESSION_BYTES))
    except FileNotFoundError:
        return None
    except ValueError:  # includes pydantic's ValidationError
        raise InputError(f"its {SESSION_NAME} cannot be read") from None


def _list_files(folder: Path, suffix: str) -> list[Path]:
    with suppress(FileNotFoundError):
        return sorted(one for one in (folder / JOURNAL_DIR).iterdir() if one.suffix == suffix)
    return []


def _iterate_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each whole line of a file after its start; the last one of a killed run may be broken.

    Raises OSError, or InputError if the file is too large.
    """
    with open_regular(path) as file:
        if path.stat().st_size > _MAX_JOURNAL_BYTES:
            raise InputError(f"its file {path.name!a} is too large")
        start = 0
        for line in file:
            if line.endswith(b"\n"):
                yield start, line[:-1]
            start += len(line)


def _read_finished(folder: Path) -> Iterator[FinishedTest]:
    for path in _list_files(folder, FINISHED_SUFFIX):
        for _, line in _iterate_lines(path):
            try:
                yield FinishedTest.model_validate_json(line)
            except ValueError:
                raise InputError(f"its file {path.name!a} is broken") from None


def _read_journals(folder: Path) -> tuple[dict[TestKey, dict[int, _Attempt]], set[TestKey]]:
    """Return the last line about each attempt at each test, and the tests that started."""
    found: dict[TestKey, dict[int, _Attempt]] = defaultdict(dict)
    started = set()
    for path in _list_files(folder, ".jsonl"):
        for start, line in _iterate_lines(path):
            key, event = _add_line(found, line, path, start)
            if event == "started":
                started.add(key)
    return found, started


def _read_kept(path: Path) -> dict[TestKey, dict[int, _Attempt]]:
    """Return the tests that the earlier attempt itself had kept."""
    found: dict[TestKey, dict[int, _Attempt]] = defaultdict(dict)
    with suppress(FileNotFoundError):
        for start, line in _iterate_lines(path):
            head, tab, rest = line.partition(b"\t")
            _add_line(found, rest, path, start + len(head) + len(tab))
    return {key: attempts for key, attempts in found.items() if _is_rated(attempts)}


def _add_line(
    found: dict[TestKey, dict[int, _Attempt]], raw: bytes, path: Path, start: int
) -> tuple[TestKey, str]:
    """Add a line about an attempt; return its test and its event."""
    try:
        line = JournalLine.model_validate_json(raw)
    except ValueError:
        raise InputError(f"its file {path.name!a} is broken") from None
    episode, has_ended = line.episode, line.event == "ended"
    key = episode.nodeid or "", episode.iteration
    attempts = found[key]
    known = attempts.get(episode.attempt)
    if known is None or has_ended or not known.has_ended:
        rated = has_ended and episode.outcome in _RATED and episode.carried_over is None
        attempts[episode.attempt] = _Attempt(has_ended, rated, path, start, len(raw))
    return key, line.event


def _is_rated(attempts: dict[int, _Attempt]) -> bool:
    """Return whether every attempt has ended, and the last one passed or failed."""
    return all(one.has_ended for one in attempts.values()) and attempts[max(attempts)].is_rated
