"""A baseline in files: a results file, a report folder, or several of them.

Of several runs the one whose name is last in natural order counts as the latest: `run-10`
comes after `run-9`, and a date written year first after an older one. Nothing in the files
tells when they were made.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path

from ci_agent_eval.contract.results import JOURNAL_DIR, RESULTS_NAME, SESSION_NAME, Session
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.baselines.request import (
    BaselineRequest,
    FoundBaseline,
    build_missing_baseline,
    build_unreadable_baseline,
)
from ci_agent_eval.results.baselines.runs import RunFiles, load_baseline_runs

_MAX_DEPTH = 4
"""How far below a folder runs are sought: more is somebody's tree of sources."""
_MAX_SESSION_BYTES = 16 * 1024 * 1024


def load_from_files(wanted: BaselineRequest) -> FoundBaseline:
    """Read a baseline from a path or a pattern, relative to the root."""
    try:
        paths = [path for path in _expand_pattern(wanted) if not _is_own_report(path, wanted)]
        runs = [run for path in paths for run in _find_runs(path, wanted)]
    except OSError as error:
        return build_unreadable_baseline(
            wanted.name, f"it cannot be listed ({error.strerror}); make it readable"
        )
    if wanted.own is not None and _is_own_report(wanted.root / wanted.name, wanted):
        return build_missing_baseline(f"{wanted.name} is the report of this very run")
    if not paths:
        return build_missing_baseline(f"no file or folder is at {wanted.name}")
    if not runs:
        return build_missing_baseline(f"{wanted.name} holds no {RESULTS_NAME} of a run")
    ordered = sorted(runs, key=lambda run: _natural_sort_key(run.label), reverse=True)
    return load_baseline_runs(
        wanted.name,
        ordered[: wanted.runs],
        root=wanted.root,
        redact=wanted.redact,
        suite=wanted.suite,
    )


def _expand_pattern(wanted: BaselineRequest) -> list[Path]:
    if "\0" in wanted.name:
        raise InputError(f"baseline {wanted.name!r}: a path has no NUL; name a file or folder")
    if os.path.lexists(wanted.root / wanted.name):
        return [wanted.root / wanted.name]
    # Path.glob takes no absolute patterns.
    matches = glob.glob(wanted.name, root_dir=wanted.root, recursive=True)  # noqa: PTH207 - as said
    return [wanted.root / match for match in sorted(matches)]


def _is_own_report(path: Path, wanted: BaselineRequest) -> bool:
    """Say whether a path is the report of the very run that is to be compared."""
    if wanted.own is None:
        return False
    own = os.path.realpath(wanted.own)
    return os.path.realpath(path) == own or os.path.realpath(path.parent) == own


def _find_runs(path: Path, wanted: BaselineRequest) -> Iterator[RunFiles]:
    """Yield the run that a path is, or the runs that lie in the folder it is."""
    if not path.is_dir():
        yield RunFiles((str(path),), _label_path(path, wanted.root))
        return
    folders = [folder for folder in _find_run_folders(path) if not _is_own_report(folder, wanted)]
    if path in folders or any(_is_shard(folder) for folder in folders if folder.parent == path):
        yield RunFiles(_list_result_files(folders), _label_path(path, wanted.root))
        return
    for child in sorted({path / folder.relative_to(path).parts[0] for folder in folders}):
        inside = [folder for folder in folders if folder.is_relative_to(child)]
        yield RunFiles(_list_result_files(inside), _label_path(child, wanted.root))


def _find_run_folders(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the folders with results, the folder itself first; links are not followed."""
    if (folder / RESULTS_NAME).is_file() or (folder / SESSION_NAME).is_file():
        yield folder
    if depth == _MAX_DEPTH:
        return
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        hidden = entry.name.startswith(".") or entry.name == JOURNAL_DIR
        if entry.is_dir(follow_symlinks=False) and not hidden:
            yield from _find_run_folders(Path(entry.path), depth + 1)


def _list_result_files(folders: list[Path]) -> tuple[str, ...]:
    """Name the results themselves: a JUnit file beside them has no episode."""
    names = (RESULTS_NAME, SESSION_NAME)
    return tuple(
        str(next(folder / name for name in names if (folder / name).is_file()))
        for folder in folders
    )


def _is_shard(folder: Path) -> bool:
    """Say whether a folder holds one shard of a run."""
    path = folder / SESSION_NAME
    try:
        if not path.is_file() or path.stat().st_size > _MAX_SESSION_BYTES:
            return False
        return Session.model_validate_json(path.read_bytes()).shard is not None
    except (OSError, ValueError):  # it is a finding once it is read as results
        return False


def _label_path(path: Path, root: Path) -> str:
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _natural_sort_key(name: str) -> list[tuple[int, str]]:
    """Return what orders names as people do: digits by their value."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
