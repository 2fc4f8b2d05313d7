"""The report folder: journals during the run, then the results merged from them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from ci_agent_eval.contract.base import describe_validation_error
from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.evaluation import (
    EvaluationReport,
    is_rendered_evaluation,
    render_evaluation,
)
from ci_agent_eval.contract.results import (
    EVAL_RESULTS_NAME,
    JOURNAL_DIR,
    JUNIT_NAME,
    RESULTS_NAME,
    SESSION_NAME,
    JournalLine,
    Session,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import open_regular, replace_file

if TYPE_CHECKING:
    from ci_agent_eval.contract.results import Experiment


try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

EpisodeKey = tuple[str, str, int, int]
"""`Episode.key`: scenario, node id, iteration, attempt."""

_JOURNAL_NAME = re.compile(r"(?:main|gw\d+)\.jsonl")
_RESULTS_START = b'{"schema_version":'
_JOURNAL_START = b'{"episode":'
_STARTS = {RESULTS_NAME: _RESULTS_START}
_LARGEST_SESSION = 16 * 1024 * 1024
_GITIGNORE = "# Created by agent-eval\n*\n"


@dataclass(frozen=True, slots=True)
class Journal:
    """One process's episodes, one per line, written immediately."""

    path: Path

    def write(self, line: JournalLine) -> None:
        """Append a line in one unbuffered write, so that a killed process leaves whole lines."""
        text = canonical_json(line).encode("ascii") + b"\n"
        with FileIO(self.path, "a") as file:
            file.write(text)


class _LinePlace(NamedTuple):
    """Position of a journal line, in bytes."""

    file: Path
    start: int
    length: int
    has_ended: bool
    """Whether it is an `ended` line."""


@dataclass(frozen=True, slots=True)
class MergedJournals:
    """The last line of each episode, as positions: the lines may be large and many."""

    places: Mapping[EpisodeKey, _LinePlace]
    unreadable: tuple[str, ...]
    """Lines that could not be read, such as `episodes/main.jsonl:2`."""

    def episodes(self) -> Iterator[Episode]:
        """Read the episodes sorted by key, one at a time."""
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
        """Create the folder, unless foreign files in it would be overwritten.

        A new or empty folder is ignored by git. Raises InputError, without changes, if a file with
        one of our names was not written by this program; `with_junit` includes `junit.xml`, which
        otherwise only pytest writes.
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
    def hold_lock(self) -> Iterator[None]:
        """Lock the existing folder against other runs. Raises InputError if another run holds it.

        The lock is on the folder itself; the system frees it when the process dies. A file system
        without locks locks nothing, and neither does Windows.
        """
        if fcntl is None:
            yield
            return
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with suppress(OSError):
                _lock_folder(descriptor, self.path)
            yield
        finally:
            os.close(descriptor)

    def clear(self, *, with_junit: bool = False) -> None:
        """Prepare the folder and remove the files of a former run of this program.

        Raises InputError as `prepare` does, and OSError if a file cannot be removed.
        """
        self.prepare(with_junit=with_junit)
        files = [*self.list_journals(), *self._list_documents(with_junit=with_junit)]
        for file in files:
            file.unlink(missing_ok=True)
        (self.path / JOURNAL_DIR).mkdir(exist_ok=True)

    def _check_ownership(self, *, with_junit: bool) -> None:
        """Raise InputError if a file with one of our names is not ours."""
        if not self.path.is_dir():
            return
        for file in [*self._list_documents(with_junit=with_junit), *self.list_journals()]:
            if os.path.lexists(file) and not self._is_ours(file):
                raise InputError(
                    f"{file}: was not written by this program and would be overwritten; "
                    "move it, or name another report directory"
                )

    def _list_documents(self, *, with_junit: bool) -> Iterator[Path]:
        # The session goes last, because it proves that the JUnit file is ours.
        junit = (JUNIT_NAME,) if with_junit else ()
        names = (RESULTS_NAME, EVAL_RESULTS_NAME, *junit, SESSION_NAME)
        return (self.path / name for name in names)

    def _is_ours(self, file: Path) -> bool:
        """Say whether this program wrote a file, by its content."""
        if not file.is_file():
            return False
        if file.name == JUNIT_NAME and (self.path / SESSION_NAME).exists():
            return self._is_ours(self.path / SESSION_NAME)
        if file.name == JUNIT_NAME:
            return False
        if file.name == SESSION_NAME:
            return _is_session(file)
        if file.name == EVAL_RESULTS_NAME:
            return is_own_evaluation_file(file)
        start = _STARTS.get(file.name, _JOURNAL_START)
        with file.open("rb") as opened:
            first = opened.read(len(start))
        # A killed writer leaves an empty or truncated journal.
        return first == start or (file.suffix == ".jsonl" and start.startswith(first))

    def list_journals(self) -> list[Path]:
        """Return the journals of the processes that ran tests, sorted."""
        folder = self.path / JOURNAL_DIR
        if not os.path.lexists(folder):
            return []
        return [file for file in sorted(folder.iterdir()) if _JOURNAL_NAME.fullmatch(file.name)]

    def journal(self, worker: str) -> Journal:
        """Return the journal of a worker or of `main`."""
        return Journal(self.path / JOURNAL_DIR / f"{worker}.jsonl")

    def write_session(self, session: Session) -> None:
        """Write `session.json` atomically."""
        _replace_file(self.path / SESSION_NAME, [canonical_json(session) + "\n"])

    def session(self) -> Session:
        """Read `session.json`."""
        return Session.model_validate_json((self.path / SESSION_NAME).read_bytes())

    def note_selected(self, found: Mapping[str, object]) -> None:
        """Record the selection, fields of `Session`; every worker records the same."""
        session = self.session()
        if session.state == "running" and session.selected is None:
            self.write_session(session.model_copy(update=found))

    def note_process_status(self, status: int) -> None:
        """Record the exit status of pytest's process in `session.json`.

        A file that cannot be read or written is left unchanged; the report then notes that the
        status is missing.
        """
        with suppress(OSError, ValueError):  # includes pydantic's ValidationError
            with open_regular(self.path / SESSION_NAME) as file:
                session = Session.model_validate_json(file.read(_LARGEST_SESSION))
            self.write_session(session.model_copy(update={"process_status": status}))

    def write_results(
        self, suite: str, *, complete: bool = True, experiment: Experiment | None = None
    ) -> tuple[str, ...]:
        """Merge the journals into `results.json`; return the positions of unreadable lines.

        `complete` is False if the run did not finish.
        """
        merged = self.merge_journals()
        complete = complete and not merged.unreadable
        ordered = map(canonical_json, merged.episodes())
        pieces = render_results(suite, ordered, complete=complete, experiment=experiment)
        _replace_file(self.path / RESULTS_NAME, pieces)
        return merged.unreadable

    def merge_journals(self) -> MergedJournals:
        """Select one line of each episode: ended lines before started ones, then the last."""
        places: dict[EpisodeKey, _LinePlace] = {}
        unreadable: list[str] = []
        for file in self.list_journals():
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
    """Yield each line with its start byte, split like `bytes.splitlines`."""
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
    except ValueError:  # includes pydantic's ValidationError
        return False
    return True


def _replace_file(path: Path, pieces: Iterable[str]) -> None:
    with replace_file(path) as file:
        file.writelines(pieces)


MAX_BYTES = 256 * 1024 * 1024
"""A larger file is not read and counts as foreign."""


def claim_evaluation_file(path: Path, *, advice: str) -> None:
    """Raise InputError with `advice` if a foreign file would be overwritten; changes nothing."""
    if not is_own_evaluation_file(path):
        raise InputError(
            f"{path}: was not written by this program and would be overwritten; "
            f"move it, or {advice}"
        )


def is_own_evaluation_file(path: Path) -> bool:
    """Say whether this program wrote the file, or it does not exist."""
    try:
        with open_regular(path, follow=True) as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return not path.is_symlink()
    except OSError:
        return False
    # What we write is ASCII.
    return len(data) <= MAX_BYTES and is_rendered_evaluation(data.decode("ascii", "replace"))


def load_evaluation_file(path: Path) -> EvaluationReport:
    """Load the report. Raises InputError if there is none."""
    advice = "name a folder in which `agent-eval run`, or pytest with --eval, wrote it"
    try:
        with open_regular(path, follow=True) as file:
            return EvaluationReport.model_validate_json(file.read(MAX_BYTES))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {advice}") from None
    except ValueError as error:  # pydantic's
        raise InputError(f"{path}: {describe_validation_error(error)}; {advice}") from None


def write_evaluation_file(path: Path, report: EvaluationReport) -> None:
    """Write the report atomically. Raises OSError."""
    with replace_file(path) as file:
        file.write(render_evaluation(report))
