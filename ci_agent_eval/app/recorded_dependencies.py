"""What the reported runs recorded of their dependencies: joined for a baseline."""

from __future__ import annotations

from pathlib import Path

from ci_agent_eval.dependencies.document import pack_dependencies
from ci_agent_eval.dependencies.model import RunDependencies
from ci_agent_eval.storage.run_folder import ReportFolder


def write_dependencies(folder: Path, recorded: RunDependencies | None) -> None:
    """Write what the joined runs recorded, or remove an earlier file. Raises OSError."""
    document = None if recorded is None else pack_dependencies(recorded)
    ReportFolder(folder).replace_dependencies(document)
