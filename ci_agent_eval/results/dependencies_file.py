"""Read `dependencies.json` beside the results of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ci_agent_eval.contract.dependencies import (
    MAX_DEPENDENCIES_BYTES,
    Dependencies,
)
from ci_agent_eval.contract.results import DEPENDENCIES_NAME
from ci_agent_eval.contract.validation_errors import describe_validation_error
from ci_agent_eval.dependencies.document import unpack_dependencies
from ci_agent_eval.dependencies.environment import compute_installation_digest
from ci_agent_eval.dependencies.merge import merge_runs
from ci_agent_eval.dependencies.model import RunDependencies
from ci_agent_eval.results.json_text import parse_json
from ci_agent_eval.storage.regular_file import open_regular

_MAX_PROBLEM = 300


def read_dependencies(folders: Sequence[Path]) -> tuple[Dependencies, ...] | str:
    """Return the document of each folder, or why one of them has none."""
    found = [_read_folder(folder) for folder in folders]
    problem = next((one for one in found if isinstance(one, str)), None)
    return problem or tuple(one for one in found if isinstance(one, Dependencies))


def _read_folder(folder: Path) -> Dependencies | str:
    try:
        with open_regular(folder / DEPENDENCIES_NAME, follow=True) as file:
            return parse_dependencies(file.read(MAX_DEPENDENCIES_BYTES + 1))
    except FileNotFoundError:
        return f"its run left no {DEPENDENCIES_NAME}"
    except OSError as error:
        return f"its {DEPENDENCIES_NAME} cannot be read: {error.strerror}"


def parse_dependencies(data: bytes) -> Dependencies | str:
    """Return the document, or why it is none."""
    if len(data) > MAX_DEPENDENCIES_BYTES:
        limit = f"{MAX_DEPENDENCIES_BYTES // 2**20} MiB at most are read"
        return f"its {DEPENDENCIES_NAME} is too large, {limit}"
    try:
        return Dependencies.model_validate(parse_json(data))
    except ValueError as error:  # includes pydantic's ValidationError
        problem = describe_validation_error(error)[:_MAX_PROBLEM]
        return f"its {DEPENDENCIES_NAME} cannot be read: {problem}"


def merge_dependencies(folders: Sequence[str]) -> RunDependencies | None:
    """Return what all runs recorded; None: one recorded nothing, or they do not belong together."""
    documents = read_dependencies([Path(folder) for folder in folders])
    return None if isinstance(documents, str) else merge_documents(documents)


def merge_documents(documents: Sequence[Dependencies]) -> RunDependencies | None:
    """Return the dependencies in all documents; None: there is none, or they do not fit."""
    try:
        return merge_runs([unpack_dependencies(one) for one in documents])
    except ValueError:
        return None


def read_environment(folder: Path) -> str | None:
    """Return the hash of the environment that a run recorded; None: it recorded none."""
    found = _read_folder(folder)
    return None if isinstance(found, str) else hash_environment(found)


def hash_environment(found: Dependencies) -> str:
    """Return the hash of Python, platform and distributions."""
    return compute_installation_digest(found.python, found.platform, dict(found.distributions))
