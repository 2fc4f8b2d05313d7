"""The accesses of a finished test that its note has."""

from __future__ import annotations

import os

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.resume import ResumeRequest
from ci_agent_eval.dependencies.git import GitRepository
from ci_agent_eval.dependencies.recording.places import Places
from ci_agent_eval.dependencies.recording.recorder import DependencyRecorder
from ci_agent_eval.pytest_plugin.resumable_run import ResumableRun


def build_run(tmp_path) -> ResumableRun:
    request = tmp_path / "request"
    request.write_text(canonical_json(ResumeRequest(command="a")))
    recorder = DependencyRecorder(Places(str(tmp_path)), lambda: None, os.environ)
    run = ResumableRun(str(request), GitRepository(tmp_path, os.environ), os.environ, recorder)
    run._tracked = frozenset({"tracked.txt", "link"})
    return run


def test_files_that_git_does_not_track_are_hashed(tmp_path):
    target = tmp_path / "target.txt"
    for name in ("tracked.txt", "notes.txt", "target.txt"):
        (tmp_path / name).write_text(name)
    found = build_run(tmp_path)._hash_files(
        {
            ("file", "tracked.txt"),
            ("file", "notes.txt"),
            ("absent", "gone.txt"),
            ("file", "link"),
            ("symlink", str(target)),  # what the tracked link names
            ("symlink", str(tmp_path)),
            ("folder", "."),
            ("host", "example.com"),
        }
    )
    assert list(found) == sorted(["notes.txt", "gone.txt", str(target)])
    assert found["gone.txt"] is None
    assert found["notes.txt"]
    assert found[str(target)]
