"""Load the baseline that a setting names: files, git, or a source of artifacts."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ci_agent_eval.contract.results import JOURNAL_DIR, RESULTS_NAME, SESSION_NAME, Session
from ci_agent_eval.contract.wording import build_natural_key
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.baselines.git import PREFIX, load_from_git
from ci_agent_eval.results.baselines.request import (
    BaselineRequest,
    BaselineSource,
    FoundBaseline,
    build_missing_baseline,
    build_unreadable_baseline,
)
from ci_agent_eval.results.baselines.runs import RunFiles, load_baseline_runs

ARTIFACT = "artifact"
"""The setting for artifacts of the base branch's last runs, read by GitHub's API."""


def load_baseline(request: BaselineRequest, sources: Mapping[str, BaselineSource]) -> FoundBaseline:
    """Load the baseline that a setting names.

    `sources` maps settings to sources that need more than files; the action provides `artifact`.
    Raises InputError for an invalid setting.
    """
    if request.name in sources:
        return sources[request.name](request)
    if request.name == ARTIFACT:
        raise InputError(
            "baseline artifact: the artifacts of a repository's workflow runs are known to the "
            "action alone; name a file, a folder or git:REF:PATH here"
        )
    return load_from_git(request) if request.name.startswith(PREFIX) else load_from_files(request)


_MAX_DEPTH = 4
"""Maximum depth of the search for runs: deeper folders are probably a source tree."""
_MAX_SESSION_BYTES = 16 * 1024 * 1024


def load_from_files(request: BaselineRequest) -> FoundBaseline:
    """Load a baseline from a path or a pattern, relative to the root."""
    try:
        paths = [path for path in _expand_pattern(request) if not _is_own_report(path, request)]
        runs = [run for path in paths for run in _find_runs(path, request)]
    except OSError as error:
        return build_unreadable_baseline(
            request.name, f"it cannot be listed ({error.strerror}); make it readable"
        )
    if request.own is not None and _is_own_report(request.root / request.name, request):
        return build_missing_baseline(f"{request.name} is the report of this very run")
    if not paths:
        return build_missing_baseline(f"no file or folder is at {request.name}")
    if not runs:
        return build_missing_baseline(f"{request.name} holds no {RESULTS_NAME} of a run")
    ordered = sorted(runs, key=lambda run: build_natural_key(run.label), reverse=True)
    return load_baseline_runs(request.name, ordered[: request.runs], request, root=request.root)


def _expand_pattern(request: BaselineRequest) -> list[Path]:
    if "\0" in request.name:
        raise InputError(f"baseline {request.name!r}: a path has no NUL; name a file or folder")
    if os.path.lexists(request.root / request.name):
        return [request.root / request.name]
    # Path.glob takes no absolute patterns.
    matches = glob.glob(request.name, root_dir=request.root, recursive=True)  # noqa: PTH207 - see above
    return [request.root / match for match in sorted(matches)]


def _is_own_report(path: Path, request: BaselineRequest) -> bool:
    """Return whether a path is the report of the run that is compared."""
    if request.own is None:
        return False
    own = os.path.realpath(request.own)
    return os.path.realpath(path) == own or os.path.realpath(path.parent) == own


def _find_runs(path: Path, request: BaselineRequest) -> Iterator[RunFiles]:
    """Yield the run of a results file or report folder, or the runs below a folder."""
    if not path.is_dir():
        yield RunFiles((str(path),), _label_path(path, request.root))
        return
    folders = [folder for folder in _find_run_folders(path) if not _is_own_report(folder, request)]
    if path in folders or any(_is_shard(folder) for folder in folders if folder.parent == path):
        yield _build_run(folders, path, request.root)
        return
    for child in sorted({path / folder.relative_to(path).parts[0] for folder in folders}):
        inside = [folder for folder in folders if folder.is_relative_to(child)]
        yield _build_run(inside, child, request.root)


def _build_run(folders: Sequence[Path], path: Path, root: Path) -> RunFiles:
    return RunFiles(_list_result_files(folders), _label_path(path, root))


def _find_run_folders(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the folders with results, starting with the folder itself; links are not followed."""
    if (folder / RESULTS_NAME).is_file() or (folder / SESSION_NAME).is_file():
        yield folder
    if depth == _MAX_DEPTH:
        return
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        hidden = entry.name.startswith(".") or entry.name == JOURNAL_DIR
        if entry.is_dir(follow_symlinks=False) and not hidden:
            yield from _find_run_folders(Path(entry.path), depth + 1)


def _list_result_files(folders: Sequence[Path]) -> tuple[str, ...]:
    """Return the result files of folders, without JUnit files, which have no episodes."""
    names = (RESULTS_NAME, SESSION_NAME)
    return tuple(
        str(next(folder / name for name in names if (folder / name).is_file()))
        for folder in folders
    )


def _is_shard(folder: Path) -> bool:
    """Return whether a folder holds one shard of a run."""
    path = folder / SESSION_NAME
    try:
        if not path.is_file() or path.stat().st_size > _MAX_SESSION_BYTES:
            return False
        return Session.model_validate_json(path.read_bytes()).shard is not None
    except (OSError, ValueError):  # loading the results reports it
        return False


def _label_path(path: Path, root: Path) -> str:
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
