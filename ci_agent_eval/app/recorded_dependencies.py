"""What the reported runs recorded: joined for a baseline, and searched for stale parts."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.analysis.stale_parts import ProjectTree, StaleParts, find_stale_parts
from ci_agent_eval.contract.results import Session
from ci_agent_eval.dependencies.document import pack_dependencies
from ci_agent_eval.dependencies.git import GitRepository, find_repository, split_paths
from ci_agent_eval.dependencies.model import RunDependencies
from ci_agent_eval.redaction import Redactor
from ci_agent_eval.results.baselines.request import EarlierRun
from ci_agent_eval.results.dependencies_file import merge_documents
from ci_agent_eval.storage.run_folder import ReportFolder

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_REGULAR = ("100644", "100755")
"""Modes of files that are neither links nor submodules."""


def write_dependencies(folder: Path, recorded: RunDependencies | None) -> None:
    """Write what the joined runs recorded, or remove an earlier file. Raises OSError.

    Without a commit nothing can be selected by it, and it would not be known as our own file.
    """
    usable = None if recorded is None or recorded.commit is None else pack_dependencies(recorded)
    ReportFolder(folder).replace_dependencies(usable)


def search_stale_parts(
    root: Path,
    environ: Mapping[str, str],
    loaded: LoadedResults,
    recorded: RunDependencies,
    earlier: EarlierRun | None,
) -> StaleParts | None:
    """Return the stale parts that a run shows; None: it is a part of the suite, or git lacks it."""
    if not _is_whole(loaded) or not recorded.complete or not recorded.is_clean:
        return None
    tree = _read_tree(root, environ, recorded.commit or "")
    if tree is None:
        return None
    before = None if earlier is None else merge_documents(earlier.dependencies)
    found = find_stale_parts(loaded.episodes, recorded, before, tree)
    redact = Redactor.from_environ(environ).text
    scenarios = (replace(one, patterns=tuple(map(redact, one.patterns))) for one in found.scenarios)
    return replace(found, scenarios=tuple(scenarios))


def _is_whole(loaded: LoadedResults) -> bool:
    """Return whether the results are of the whole suite, by its sessions."""
    shards = [session.shard for session in loaded.sessions if session.shard is not None]
    is_complete = not any(finding.blocking for finding in loaded.findings)
    return is_complete and not shards and all(map(_is_unrestricted, loaded.sessions))


def _is_unrestricted(session: Session) -> bool:
    names_tests = any("::" in path or path.endswith(".py") for path in session.paths)
    excluded = session.deselected or session.restrictions or session.removed or session.stopped
    return session.state == "finished" and not names_tests and not excluded


def _read_tree(root: Path, environ: Mapping[str, str], commit: str) -> ProjectTree | None:
    """Return the files of a commit; None if git does not have it here."""
    repository = find_repository(root, environ)
    if repository is None or not _COMMIT.fullmatch(commit):
        return None
    try:
        entries = split_paths(repository.run("ls-tree", "-r", "-z", commit))
    except (OSError, subprocess.SubprocessError):
        return None
    paths = (entry.partition("\t")[2] for entry in entries if entry.startswith(_REGULAR))
    return ProjectTree(frozenset(paths), lambda path: _read_file(repository, commit, path))


def _read_file(repository: GitRepository, commit: str, path: str) -> bytes | None:
    try:
        return repository.run("cat-file", "blob", f"{commit}:{path}")
    except (OSError, subprocess.SubprocessError):
        return None
