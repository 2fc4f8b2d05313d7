"""The conditions of a run: built at its start, and compared when another attempt continues it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from hashlib import file_digest
from pathlib import Path

from ci_agent_eval.contract.results import UNKNOWN_DIGEST, Digests, StartConditions
from ci_agent_eval.dependencies.environment import (
    compute_installation_digest,
    get_platform,
    get_python_version,
    hash_distributions,
    hash_variable,
    is_always_read,
)
from ci_agent_eval.dependencies.git import GitRepository
from ci_agent_eval.redaction import is_secret_name
from ci_agent_eval.storage.regular_file import open_regular

_SHORT_SHA = 7
_LARGEST = 1024**3
"""Bytes of the largest file that is compared."""
_SECRET_SUFFIXES = frozenset({".pem", ".key", ".p12", ".pfx"})


def build_conditions(
    repository: GitRepository,
    environ: Mapping[str, str],
    *,
    program: str,
    command: str,
    folder: Path,
    configuration: Path | None,
    recorded_at: int,
) -> StartConditions | None:
    """Return the conditions of a run that begins; None: git does not know the commit.

    `folder` is the one that pytest started in, `configuration` is its file. Raises OSError or
    subprocess.SubprocessError if git fails or a changed file cannot be read.
    """
    commit = repository.find_commit()
    if commit is None:
        return None
    changed = (*repository.list_modified(), *repository.list_new())
    return StartConditions(
        program=program,
        command=command,
        folder=Path(os.path.relpath(folder.resolve(), repository.top)).as_posix(),
        commit=commit,
        changes={path: hash_file(repository.top / path) for path in sorted(changed)},
        environment=compute_installation_digest(
            get_python_version(), get_platform(), hash_distributions()
        ),
        configuration=None if configuration is None else hash_file(configuration),
        variables={
            name: hash_variable(name, value)
            for name, value in sorted(environ.items())
            if is_always_read(name)
        },
        recorded_at=recorded_at,
    )


def hash_file(path: Path) -> str | None:
    """Return the SHA-256 of a file's bytes; None: there is no file. Raises OSError.

    For a file that is secret by its name it is `set`: a hash of a short secret can be guessed.
    """
    try:
        with open_regular(path, follow=True) as file:
            if _is_secret(path):
                return "set"
            if os.fstat(file.fileno()).st_size > _LARGEST:
                raise OSError("the file is too large to compare")
            return file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it is buffered
    except FileNotFoundError:
        return None


def _is_secret(path: Path) -> bool:
    stem = path.name.removeprefix(".").partition(".")[0]
    is_environment = path.name == ".env" or path.name.startswith(".env.")
    return is_environment or path.suffix in _SECRET_SUFFIXES or is_secret_name(stem)


def find_difference(
    earlier: StartConditions, now: StartConditions, environ: Mapping[str, str], top: Path
) -> str | None:
    """Return why a run cannot continue an earlier one, as the end of a sentence; None: it can.

    `environ` and the files below `top` are those of now.
    """
    return next(_list_differences(earlier, now, environ, top), None)


def _list_differences(
    earlier: StartConditions, now: StartConditions, environ: Mapping[str, str], top: Path
) -> Iterator[str]:
    if earlier.commit != now.commit:
        yield f"it is about commit {earlier.commit[:_SHORT_SHA]}, this is {now.commit[:_SHORT_SHA]}"
    if earlier.program != now.program:
        yield f"agent-eval was {earlier.program[:20]}, and is {now.program}"
    if earlier.command != now.command:
        yield "its suite, paths, arguments or shard differ"
    if earlier.folder != now.folder:
        yield "pytest started in another folder"
    if changed := _find_changed(earlier.changes, now.changes):
        yield f"the uncommitted file {changed} has changed since it began"
    if earlier.configuration != now.configuration:
        yield "pytest's configuration file has changed"
    if earlier.environment != now.environment:
        yield "Python, the platform or an installed package is another one"
    names = earlier.variables.keys() | now.variables.keys()
    variables = {name: hash_variable(name, environ.get(name)) for name in names}
    if changed := _find_changed(earlier.variables, variables):
        yield f"the environment variable {changed} has changed"
    files = {path: hash_file_if_readable(top / path) for path in earlier.files}
    if changed := _find_changed(earlier.files, files):
        yield f"the file {changed}, which git does not track, has changed"


def _find_changed(earlier: Digests, now: Digests) -> str | None:
    """Return the first name whose hashes differ, as it may be printed."""
    for name in sorted(earlier.keys() | now.keys()):
        is_known = name in earlier and name in now  # a deleted file is known, without a hash
        if not is_known or earlier[name] != now[name] or earlier[name] == UNKNOWN_DIGEST:
            return ascii(name[:200])[1:-1]
    return None


def hash_file_if_readable(path: Path) -> str | None:
    """Return a file's hash, or a text that counts as changed if it cannot be read."""
    try:
        return hash_file(path)
    except (OSError, ValueError):  # such as a folder, or a name with a null character
        return UNKNOWN_DIGEST
