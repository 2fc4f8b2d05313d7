"""`eval-results.json` on disk: ownership check and atomic write.

Its keys are fixed by the design and cannot mark ownership: a file is ours if this program
would write the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from ci_agent_eval.contract.base import describe_validation_error
from ci_agent_eval.contract.evaluation import (
    EvaluationReport,
    is_rendered_evaluation,
    render_evaluation,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import open_regular, replace_file

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
