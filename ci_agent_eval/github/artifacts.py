"""The reports that workflow runs left as artifacts: chosen by name, fetched, taken apart.

Whoever ran a job chose what its artifacts hold: a fork too. GitHub vouches for whose they are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from ci_agent_eval.contract.results import JOURNAL_DIR, JUNIT_NAME, RESULTS_NAME, SESSION_NAME
from ci_agent_eval.errors import InputError
from ci_agent_eval.github.failures import printable_line
from ci_agent_eval.github.runs import Artifact, RunsApi
from ci_agent_eval.storage.archives import ArchiveError, ArchiveLimits, extract_archive

MOST = 300
"""Artifacts of one run that are looked at."""

LARGEST = 256 * 1024 * 1024
"""Packed bytes that the artifacts of one run may have together."""

LIMITS = ArchiveLimits()
"""What they may hold together, unpacked."""

Wanted = Callable[[PurePosixPath], bool]


def is_results(path: PurePosixPath) -> bool:
    """Say whether a file of a report folder holds a run's episodes."""
    return path.name in {RESULTS_NAME, SESSION_NAME}


def is_data(path: PurePosixPath) -> bool:
    """Say whether a file of a report folder is one that a run itself left; no other is read."""
    is_journal = path.parent.name == JOURNAL_DIR and path.suffix == ".jsonl"
    return is_results(path) or path.name == JUNIT_NAME or is_journal


def named(artifacts: Iterable[Artifact], pattern: str) -> tuple[Artifact, ...]:
    """Return those whose name matches, by name: the newest of each name.

    A workflow run that is run again may have several of the same name.
    """
    newest: dict[str, Artifact] = {}
    for artifact in sorted(artifacts, key=lambda one: one.id):
        if fnmatchcase(artifact.name, pattern):
            newest[artifact.name] = artifact
    return tuple(newest[name] for name in sorted(newest))


def list_artifacts(api: RunsApi, run_id: int, pattern: str) -> tuple[Artifact, ...]:
    """Return the artifacts of a run whose name matches; raises InputError and PublishError."""
    listed = api.artifacts_of_run(run_id, limit=MOST + 1)
    if len(listed) > MOST:
        raise InputError(f"run {run_id} has more than {MOST} artifacts, so none is read")
    return named(listed, pattern)


def fetch(
    api: RunsApi,
    artifacts: Sequence[Artifact],
    into: Path,
    *,
    run_id: int,
    head_sha: str,
    wanted: Wanted,
) -> None:
    """Write the wanted files of a run's artifacts below `into`, an empty folder.

    Of several each has a folder of its own, by its number.

    Raises InputError, with one sentence, where one of them is refused; nothing is to be used
    then. Raises PublishError where one cannot be had, GoneError where it has expired.
    """
    packed, unpacked = LARGEST, LIMITS.total_bytes
    for number, artifact in enumerate(artifacts, start=1):
        _check_origin(artifact, run_id, head_sha)
        packed -= artifact.size_bytes
        if packed < 0:
            limit = f"{LARGEST // 2**20:,} MiB at most are read"
            raise InputError(f"{_name(artifact)}: it is too large; of one run {limit}")
        folder = into / str(number) if len(artifacts) > 1 else into
        _fetch_one(api, artifact, folder, wanted, replace(LIMITS, total_bytes=unpacked))
        unpacked -= sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _check_origin(artifact: Artifact, run_id: int, head_sha: str) -> None:
    if artifact.run_id not in {None, run_id}:
        raise InputError(f"{_name(artifact)}: it belongs to run {artifact.run_id}, not {run_id}")
    if artifact.head_sha not in {None, head_sha}:
        other = printable_line(str(artifact.head_sha))
        raise InputError(f"{_name(artifact)}: its run is about commit {other}, not {head_sha}")


def _fetch_one(
    api: RunsApi, artifact: Artifact, folder: Path, wanted: Wanted, limits: ArchiveLimits
) -> None:
    with tempfile.TemporaryDirectory(prefix="agent-eval-") as packed:
        archive = Path(packed) / "artifact"
        try:
            folder.mkdir(exist_ok=True)
            api.download_artifact(artifact, archive, largest=LARGEST)
            extract_archive(archive, folder, wanted=wanted, limits=limits)
        except ArchiveError as error:
            raise InputError(f"{_name(artifact)}: {error.problem}") from None
        except InputError as error:
            raise InputError(f"{_name(artifact)}: {error}") from None
        except OSError as error:
            problem = f"{_name(artifact)}: cannot be kept here ({error.strerror})"
            raise InputError(problem) from None


def _name(artifact: Artifact) -> str:
    return f"artifact {printable_line(artifact.name)!r} of run {artifact.run_id}"
