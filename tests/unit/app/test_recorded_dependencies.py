"""The dependencies of joined runs in the folder of their report."""

from __future__ import annotations

import pytest

from ci_agent_eval.app.recorded_dependencies import write_dependencies
from ci_agent_eval.dependencies.model import RunDependencies
from ci_agent_eval.storage.run_folder import ReportFolder


@pytest.mark.parametrize(("commit", "is_written"), [("c" * 40, True), (None, False)])
def test_a_file_is_written_of_a_commit_and_known_as_our_own(tmp_path, commit, is_written):
    for _ in range(2):
        recorded = RunDependencies(recorded_at=1, python="p", platform="p", commit=commit)
        write_dependencies(tmp_path, recorded)
        assert (tmp_path / "dependencies.json").exists() is is_written
        ReportFolder(tmp_path).prepare()
    write_dependencies(tmp_path, None)
    assert not (tmp_path / "dependencies.json").exists()
