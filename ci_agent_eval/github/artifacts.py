"""Report artifacts of workflow runs: selection by name, download, extraction.

Their content is untrusted, because a fork's job may have written it. GitHub guarantees only the
run that they belong to.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ci_agent_eval.contract.results import (
    CONFIRMATION_NAME,
    JOURNAL_DIR,
    JUNIT_NAME,
    RESULTS_NAME,
    SESSION_NAME,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.github.api import Artifact
from ci_agent_eval.github.api_errors import make_printable_line
from ci_agent_eval.storage.archives import ArchiveError, ArchiveLimits, extract_archive

if TYPE_CHECKING:
    from ci_agent_eval.github.client import GitHubApi


MAX_ARTIFACTS = 300
"""Maximum number of artifacts of one run."""

MAX_PACKED_BYTES = 256 * 1024 * 1024
"""Limit for the total packed size of one run's artifacts."""

UNPACKED_LIMITS = ArchiveLimits()
"""Default limits for the unpacked artifacts of one run."""

_ZIP_SIGNATURE = b"PK"

IsWanted = Callable[[PurePosixPath], bool]


def is_results_file(path: PurePosixPath) -> bool:
    """Say whether a file of a report folder holds a run's episodes."""
    return path.name in {RESULTS_NAME, SESSION_NAME}


def is_run_data(path: PurePosixPath) -> bool:
    """Say whether a file of a report folder was written by the run itself; only these are read."""
    is_journal = path.parent.name == JOURNAL_DIR and path.suffix == ".jsonl"
    names = {JUNIT_NAME, CONFIRMATION_NAME}
    return is_results_file(path) or path.name in names or is_journal


def select_artifacts(artifacts: Iterable[Artifact], pattern: str) -> tuple[Artifact, ...]:
    """Return the artifacts that match `pattern`, sorted by name, the newest of each name.

    A repeated workflow run may have several artifacts of the same name; the newer one may have the
    lower id.
    """
    newest: dict[str, Artifact] = {}
    for artifact in sorted(artifacts, key=lambda one: (one.created_at, one.id)):
        if fnmatchcase(artifact.name, pattern):
            newest[artifact.name] = artifact
    return tuple(newest[name] for name in sorted(newest))


def list_artifacts(api: GitHubApi, run_id: int, pattern: str) -> tuple[Artifact, ...]:
    """Return a run's artifacts with a matching name; raises InputError and PublishError."""
    listed = api.artifacts_of_run(run_id, limit=MAX_ARTIFACTS + 1)
    if len(listed) > MAX_ARTIFACTS:
        raise InputError(f"run {run_id} has more than {MAX_ARTIFACTS} artifacts, so none is read")
    return select_artifacts(listed, pattern)


def fetch_artifacts(
    api: GitHubApi,
    artifacts: Sequence[Artifact],
    into: Path,
    *,
    run_id: int,
    head_sha: str,
    wanted: IsWanted,
    limits: ArchiveLimits = UNPACKED_LIMITS,
) -> None:
    """Write the wanted files of a run's artifacts to `into`, an empty folder.

    Each of several artifacts gets its own numbered folder. `limits.total_bytes` applies to all of
    them together; artifacts that are single files are skipped. Raises InputError with one sentence
    if an artifact is refused; then none may be used. Raises PublishError if one cannot be
    downloaded, and GoneError if it has expired.
    """
    packed, unpacked = MAX_PACKED_BYTES, limits.total_bytes
    for number, artifact in enumerate(artifacts, start=1):
        _check_origin(artifact, run_id, head_sha)
        packed -= artifact.size_bytes
        if packed < 0:
            limit = f"{MAX_PACKED_BYTES // 2**20:,} MiB at most are read"
            raise InputError(f"{_describe_artifact(artifact)}: it is too large; of one run {limit}")
        folder = into / str(number) if len(artifacts) > 1 else into
        _fetch_one(api, artifact, folder, wanted, replace(limits, total_bytes=unpacked))
        unpacked -= sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _check_origin(artifact: Artifact, run_id: int, head_sha: str) -> None:
    if artifact.run_id not in {None, run_id}:
        raise InputError(
            f"{_describe_artifact(artifact)}: it belongs to run {artifact.run_id}, not {run_id}"
        )
    if artifact.head_sha not in {None, head_sha}:
        other = make_printable_line(str(artifact.head_sha))
        raise InputError(
            f"{_describe_artifact(artifact)}: its run is about commit {other}, not {head_sha}"
        )


def _fetch_one(
    api: GitHubApi, artifact: Artifact, folder: Path, wanted: IsWanted, limits: ArchiveLimits
) -> None:
    with tempfile.TemporaryDirectory(prefix="agent-eval-") as packed:
        archive = Path(packed) / "artifact"
        try:
            folder.mkdir(exist_ok=True)
            api.download_artifact(artifact, archive, largest=MAX_PACKED_BYTES)
            if not _is_single_file(artifact, archive):
                extract_archive(archive, folder, wanted=wanted, limits=limits)
        except ArchiveError as error:
            raise InputError(f"{_describe_artifact(artifact)}: {error.problem}") from None
        except InputError as error:
            raise InputError(f"{_describe_artifact(artifact)}: {error}") from None
        except OSError as error:
            problem = f"{_describe_artifact(artifact)}: cannot be kept here ({error.strerror})"
            raise InputError(problem) from None


def _is_single_file(artifact: Artifact, content: Path) -> bool:
    """Return whether an artifact is one file, uploaded with `archive: false`, such as report.html.

    It has the file's name. Anything else that is no archive is broken.
    """
    with content.open("rb") as file:
        is_archive = file.read(len(_ZIP_SIGNATURE)) == _ZIP_SIGNATURE
    return not is_archive and bool(PurePosixPath(artifact.name).suffix)


def _describe_artifact(artifact: Artifact) -> str:
    return f"artifact {make_printable_line(artifact.name)!r} of run {artifact.run_id}"
