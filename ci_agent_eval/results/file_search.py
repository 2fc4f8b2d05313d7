"""Find result files by patterns and folders, sorted independently of the file system."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ci_agent_eval.contract.canonical import HEADER_START
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.contract.results import (
    CONFIRMATION_NAME,
    EVAL_RESULTS_NAME,
    JOURNAL_DIR,
    JUNIT_NAME,
    RESULTS_NAME,
    SESSION_NAME,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import open_regular

MAX_FILE_BYTES = 2 * 1024**3
"""Maximum file size; a larger file is a finding."""

_VERDICT_NAME = "verdict.json"
_OWN_OUTPUT = (_VERDICT_NAME, EVAL_RESULTS_NAME, CONFIRMATION_NAME)
_MAX_DEPTH = 20
_MAX_FOREIGN_FILES = 1000
_RESULT_SUFFIXES = frozenset({".csv", ".eval", ".json", ".jsonl", ".ndjson", ".xml"})
"""Suffixes of other tools' results; other files of a folder are not read."""


class ResultFile(NamedTuple):
    """One file to read."""

    path: Path
    where: str
    """Name in reports: posix, relative to the root if it is inside."""


class RunFolder(NamedTuple):
    """The files of one run of our plugin in a folder."""

    folder: str
    session: ResultFile | None = None
    results: ResultFile | None = None
    journal: tuple[ResultFile, ...] = ()
    junit: ResultFile | None = None
    junit_path: Path | None = None
    """Path of its JUnit file, which may not exist; only cases in it certainly belong to the run."""
    confirmation: ResultFile | None = None
    lacks_junit: bool = False
    """Whether it was asked to write a JUnit file and there is none."""


class FoundFiles(NamedTuple):
    """All files to read, in reading order."""

    runs: tuple[RunFolder, ...] = ()
    episodes: tuple[ResultFile, ...] = ()
    """Episode files that belong to no run of our plugin."""
    junit: tuple[ResultFile, ...] = ()
    """JUnit files, including those in run folders."""
    findings: tuple[Finding, ...] = ()


def find_result_files(
    results: Sequence[str], junit: Sequence[str], root: Path, runs: Sequence[Path] = ()
) -> FoundFiles:
    """Expand patterns, folders and file names, relative to `root`.

    Each of `runs` is the folder of one run that should have written its JUnit file, too;
    folders below it belong to other runs. Raises InputError for an invalid pattern.
    """
    search = _FileSearch(_normalize_path(root))
    try:
        for folder in runs:
            search.add_run(folder)
        for pattern in results:
            search.add_results(pattern)
        for pattern in junit:
            search.add_junit(pattern)
        return search.build_found_files()
    except OSError as error:
        raise InputError(
            f"cannot list {error.filename!r}: {error.strerror}; make it readable, or name "
            "the result files one by one"
        ) from error


@dataclass(slots=True)
class _FileSearch:
    """Collects the files found so far, each once, even if several patterns match it."""

    root: Path
    run_folders: set[Path] = field(default_factory=set)
    junit_wanted: set[Path] = field(default_factory=set)
    """Run folders that were named as folders, which includes their JUnit file."""
    junit_required: set[Path] = field(default_factory=set)
    episode_files: set[Path] = field(default_factory=set)
    junit_files: set[Path] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    linked: list[Path] = field(default_factory=list)
    """Linked folders that were not searched and do not look like run folders."""
    bases: list[str] = field(default_factory=list)
    """Real folders that may contain files, besides the root: the named ones."""

    def add_run(self, folder: Path) -> None:
        """Add the folder itself and nothing below it."""
        path = _normalize_path(self.root / folder)
        self.bases.append(os.path.realpath(path))
        if not _is_run_folder(path):
            self._find_no_run(path, self._name_path(path))
        self.run_folders.add(path)
        self.junit_wanted.add(path)
        self.junit_required.add(path)

    def add_results(self, pattern: str) -> None:
        for path in self._expand(pattern, "result files"):
            if path.is_dir():
                self._add_folder(path, pattern)
            else:
                self._add_result_file(path)

    def add_junit(self, pattern: str) -> None:
        for path in self._expand(pattern, "JUnit files"):
            if not path.is_dir():
                self.junit_files.add(path)
                continue
            inside = [file for file in self._iterate_files(path) if file.suffix.lower() == ".xml"]
            if not inside:
                self._find_nothing(pattern, f"the folder {self._name_path(path)} holds no XML file")
            self.junit_files.update(inside)

    def build_found_files(self) -> FoundFiles:
        """Return the found files, checked and sorted."""
        runs = tuple(
            run
            for folder in sorted(self.run_folders, key=_path_sort_key)
            if (run := self._run(folder)) is not None
        )
        inside = {run.junit.path for run in runs if run.junit is not None}
        junit = sorted(self.junit_files | inside, key=_path_sort_key)
        self._report_linked()
        return FoundFiles(
            runs=runs,
            episodes=self._keep_readable(sorted(self.episode_files, key=_path_sort_key)),
            junit=self._keep_readable(junit),
            findings=tuple(sorted(set(self.findings))),
        )

    def _expand(self, pattern: str, kind: str) -> list[Path]:
        """Return the matching paths; no match is a finding."""
        if not pattern.strip() or "\0" in pattern:
            raise InputError(
                f"{pattern!r} names no {kind}; give a file, a folder, or a pattern such as "
                "'reports/**/*.xml'"
            )
        self.bases.append(_find_base_folder(pattern, self.root))
        if os.path.lexists(self.root / pattern):
            return [_normalize_path(self.root / pattern)]
        # Path.glob neither takes absolute patterns nor leaves out hidden files.
        matches = glob.glob(pattern, root_dir=self.root, recursive=True)  # noqa: PTH207 - see above
        if not matches:
            self._find_nothing(pattern, f"no {kind} match {pattern!r}")
        return [_normalize_path(self.root / match) for match in matches]

    def _find_nothing(self, pattern: str, sentence: str) -> None:
        hint = "check that the suite ran before and where it writes"
        self.findings.append(Finding("no_results", _make_printable(pattern), f"{sentence}; {hint}"))

    def _find_no_run(self, folder: Path, pattern: str) -> None:
        names = f"no {RESULTS_NAME}, {JOURNAL_DIR}/*.jsonl, {JUNIT_NAME} or other result file"
        self._find_nothing(pattern, f"the folder {self._name_path(folder)} holds {names}")

    def _add_folder(self, folder: Path, pattern: str) -> None:
        runs = [path for path in self._iterate_folders(folder) if _is_run_folder(path)]
        before = len(self.findings)
        files = [] if any(map(_has_own_episodes, runs)) else self._list_foreign_files(folder)
        if not runs and not files and len(self.findings) == before:
            self._find_no_run(folder, pattern)
        for path in files:
            self._add_result_file(path)
        self.run_folders.update(runs)
        self.junit_wanted.update(runs)

    def _list_foreign_files(self, folder: Path) -> list[Path]:
        """List the files that other tools may have written; too many are a finding."""
        found = [
            path
            for path in self._iterate_files(folder)
            if path.suffix.lower() in _RESULT_SUFFIXES
            and not path.name.startswith(".")
            and path.name != JUNIT_NAME
        ]
        if len(found) <= _MAX_FOREIGN_FILES:
            return found
        message = (
            f"it holds {len(found)} files that may be results, more than {_MAX_FOREIGN_FILES}; "
            "name them by a pattern, such as 'evals/*.json'"
        )
        self.findings.append(Finding("unreadable_file", self._name_path(folder), message))
        return []

    def _add_result_file(self, path: Path) -> None:
        """Add a named file to its run, to the JUnit files or to the other episode files."""
        if path.name in _OWN_OUTPUT:
            return  # our own output, which contains no results of this run
        if path.name in (SESSION_NAME, RESULTS_NAME):
            self.run_folders.add(path.parent)
        elif path.parent.name == JOURNAL_DIR and (path.parent.parent / SESSION_NAME).exists():
            self.run_folders.add(path.parent.parent)
        elif path.suffix.lower() == ".xml":
            self.junit_files.add(path)
        else:
            self.episode_files.add(path)

    def _run(self, folder: Path) -> RunFolder | None:
        journal = sorted((folder / JOURNAL_DIR).glob("*.jsonl"), key=_path_sort_key)
        junit_path = folder / JUNIT_NAME
        junit = self._find_optional(junit_path) if folder in self.junit_wanted else None
        return RunFolder(
            folder=self._name_path(folder),
            session=self._find_optional(folder / SESSION_NAME),
            results=self._find_optional(folder / RESULTS_NAME),
            journal=self._keep_readable(journal),
            junit=junit,
            junit_path=junit_path,
            confirmation=self._find_optional(folder / CONFIRMATION_NAME),
            lacks_junit=folder in self.junit_required and not os.path.lexists(junit_path),
        )

    def _find_optional(self, path: Path) -> ResultFile | None:
        if not os.path.lexists(path):
            return None
        return next(iter(self._keep_readable([path])), None)

    def _keep_readable(self, paths: Iterable[Path]) -> tuple[ResultFile, ...]:
        """Return the readable files; the others become findings."""
        inputs = []
        for path in paths:
            problem = self._find_problem(path)
            if problem is None:
                inputs.append(ResultFile(path, self._name_path(path)))
            else:
                self.findings.append(Finding("unreadable_file", self._name_path(path), problem))
        return tuple(inputs)

    def _find_problem(self, path: Path) -> str | None:
        try:
            status = path.stat()
        except OSError as error:
            return f"it cannot be opened: {error.strerror}"
        if not stat.S_ISREG(status.st_mode):
            return "it is not a regular file"
        if status.st_size > MAX_FILE_BYTES:
            return "it is larger than 2 GiB; split the run into shards"
        real = os.path.realpath(path)
        if not any(_is_below(real, base) for base in (os.path.realpath(self.root), *self.bases)):
            return "it is a symbolic link that leads outside; copy the file instead"
        return None

    def _name_path(self, path: Path) -> str:
        inside = path.is_relative_to(self.root)
        return _make_printable((path.relative_to(self.root) if inside else path).as_posix())

    def _iterate_folders(self, folder: Path, depth: int = 0) -> Iterator[Path]:
        """Yield the folder and all folders below it, except hidden and journal folders."""
        yield folder
        for entry in os.scandir(folder):
            if entry.name.startswith(".") or entry.name == JOURNAL_DIR or not entry.is_dir():
                continue
            path = Path(entry.path)
            if entry.is_symlink() and not _looks_like_run_folder(path):
                self.linked.append(path)
            elif entry.is_symlink() or depth == _MAX_DEPTH:
                reason = "it is a linked or too deep folder, which is not searched; name it itself"
                self.findings.append(Finding("unreadable_file", self._name_path(path), reason))
            else:
                yield from self._iterate_folders(path, depth + 1)

    def _report_linked(self) -> None:
        """Add one finding for all linked folders: a package tree may contain hundreds."""
        linked = sorted(set(self.linked), key=_path_sort_key)
        if not linked:
            return
        rest = f" and {len(linked) - 1} more are linked folders" if len(linked) > 1 else ""
        verb = "" if rest else " is a linked folder"
        message = f"it{rest or verb}, not searched; name the folder itself if it holds results"
        where = self._name_path(linked[0])
        self.findings.append(Finding("unreadable_file", where, message, blocking=False))

    def _iterate_files(self, folder: Path) -> Iterator[Path]:
        for inner in self._iterate_folders(folder):
            yield from (path for path in inner.iterdir() if not path.is_dir())


def _looks_like_run_folder(folder: Path) -> bool:
    """Return whether a folder's name or content looks like a run of our plugin."""
    name = folder.name.lower().replace("_", "-")
    return "agent-eval" in name or "episode" in name or _is_run_folder(folder)


def _is_run_folder(folder: Path) -> bool:
    names = (SESSION_NAME, RESULTS_NAME, JUNIT_NAME)
    return any((folder / name).exists() for name in names) or bool(
        next((folder / JOURNAL_DIR).glob("*.jsonl"), None)
    )


def _has_own_episodes(folder: Path) -> bool:
    """Return whether a folder holds episodes that our plugin or a report wrote."""
    if (folder / SESSION_NAME).exists() or any((folder / JOURNAL_DIR).glob("*.jsonl")):
        return True
    try:
        with open_regular(folder / RESULTS_NAME, follow=True) as opened:
            return opened.read(len(HEADER_START)) == HEADER_START.encode()
    except OSError:
        return False


def _normalize_path(path: Path) -> Path:
    """Make a path absolute and remove dots, without following symbolic links."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links


def _find_base_folder(pattern: str, root: Path) -> str:
    """Return the real folder before a pattern's first wildcard."""
    plain = Path(root)
    for part in Path(pattern).parts:
        if glob.has_magic(part):
            break
        plain /= part
    if plain.is_dir():
        return os.path.realpath(plain)
    # The folder was named, so a link in it must not lead outside of it.
    return os.path.realpath(plain.parent)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _path_sort_key(path: Path) -> bytes:
    return os.fsencode(path.as_posix())


def _make_printable(text: str) -> str:
    return os.fsencode(text).decode("utf-8", "replace")
