"""The report directory: journals while the run lasts, then the results merged from them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.contract.results import (
    JOURNAL_DIR,
    RESULTS_NAME,
    SESSION_NAME,
    JournalLine,
    Session,
)
from ci_agent_eval.errors import InputError

_JOURNAL_NAME = re.compile(r"(?:main|gw\d+)\.jsonl")
_OURS = {RESULTS_NAME: b'{"schema_version":', SESSION_NAME: b"{"}
_JOURNAL_START = b'{"episode":'


@dataclass(frozen=True, slots=True)
class Journal:
    """One process's episodes, a line each, on disk the moment they are written."""

    path: Path

    def write(self, line: JournalLine) -> None:
        """Append a line: one unbuffered write, so that a kill leaves whole lines behind."""
        with self.path.open("ab", buffering=0) as file:
            file.write(canonical_json(line).encode("ascii") + b"\n")


@dataclass(frozen=True, slots=True)
class ReportFolder:
    """The files of one run."""

    path: Path

    def clear(self) -> None:
        """Make the folder and remove what a former run of this program left in it.

        Raises InputError where a file of one of our names is not ours.
        """
        try:
            (self.path / JOURNAL_DIR).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise InputError(
                f"{self.path} is in the way: a report directory cannot be made there; "
                "name another one"
            ) from None
        for file, start in [*self._documents(), *self._old_journals()]:
            _remove_ours(file, start)

    def _documents(self) -> Iterator[tuple[Path, bytes]]:
        for name, start in _OURS.items():
            yield self.path / name, start

    def _old_journals(self) -> Iterator[tuple[Path, bytes]]:
        for file in sorted((self.path / JOURNAL_DIR).iterdir()):
            if _JOURNAL_NAME.fullmatch(file.name):
                yield file, _JOURNAL_START

    def journal(self, worker: str) -> Journal:
        """Return the journal of a worker, or of `main`."""
        return Journal(self.path / JOURNAL_DIR / f"{worker}.jsonl")

    def write_session(self, session: Session) -> None:
        """Write `session.json` in one step: a reader sees the old or the new one."""
        _replace(self.path / SESSION_NAME, [canonical_json(session) + "\n"])

    def session(self) -> Session:
        """Read `session.json`."""
        return Session.model_validate_json((self.path / SESSION_NAME).read_bytes())

    def note_selected(self, count: int) -> None:
        """Say in `session.json` how many episodes are to run; every worker says the same."""
        session = self.session()
        if session.state == "running" and session.selected is None:
            self.write_session(session.model_copy(update={"selected": count}))

    def write_results(self, suite: str) -> tuple[str, ...]:
        """Merge the journals into `results.json`; return what could not be read, by its place."""
        merged, unreadable = self._merge()
        ordered = (canonical_json(merged[key].episode) for key in sorted(merged))
        _replace(self.path / RESULTS_NAME, render_results(suite, ordered))
        return unreadable

    def _merge(self) -> tuple[dict[tuple[str, str, int, int], JournalLine], tuple[str, ...]]:
        """Keep one line of each episode: an ended one before a started one, then the last."""
        merged: dict[tuple[str, str, int, int], JournalLine] = {}
        unreadable: list[str] = []
        for file, _ in self._old_journals():
            for number, raw in enumerate(file.read_bytes().splitlines(), start=1):
                try:
                    line = JournalLine.model_validate_json(raw)
                except ValueError:
                    unreadable.append(f"{JOURNAL_DIR}/{file.name}:{number}")
                    continue
                known = merged.get(line.episode.key)
                if known is None or line.event == "ended" or known.event == "started":
                    merged[line.episode.key] = line
        return merged, tuple(unreadable)


def _remove_ours(file: Path, start: bytes) -> None:
    if not file.exists():
        return
    with file.open("rb") as opened:
        first = opened.read(len(start))
    if not start.startswith(first) and first != start:
        raise InputError(
            f"{file} was not written by this program and would be overwritten; "
            "move it, or name another report directory"
        )
    file.unlink()


def _replace(path: Path, pieces: Iterable[str]) -> None:
    """Write a file beside its place and move it there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(pieces)
    beside.replace(path)
