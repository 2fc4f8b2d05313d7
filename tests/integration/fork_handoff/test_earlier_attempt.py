"""What a job that is run again reads of its earlier attempt: an artifact of this very run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.app.earlier_attempt import download_earlier_attempt, fetch_attempt
from ci_agent_eval.config.inputs import ActionInputs
from ci_agent_eval.errors import InputError
from ci_agent_eval.github.client import Connection
from tests.archive_builders import report_files, zipped
from tests.integration.github.rig import REPO, SHA, TOKEN, Rig, pull_event

NAME = "agent-eval-report"
FILES = {
    **report_files(commit=SHA),
    "episodes/main.jsonl": "{}\n",
    "episodes/main.finished": "{}\n",
    "episodes/earlier.kept": "",
    "episodes/run.sh": "exit",
}


def own_run(rig: Rig, files: dict[str, Any], head_sha: str = SHA, name: str = NAME) -> int:
    run = rig.fake.add_workflow_run(REPO, event="pull_request", head_sha=head_sha)
    rig.fake.add_artifact(REPO, run.id, name, data=zipped(files))
    return int(run.id)


def fetch(rig: Rig, run_id: int, into: Path, name: str = NAME) -> None:
    with rig.connect(Connection(REPO, TOKEN, rig.fake.url, timeout_s=5)) as api:
        fetch_attempt(api, run_id, SHA, name, into)


def test_the_files_of_the_episodes_are_read(rig: Rig, tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()
    fetch(rig, own_run(rig, FILES), into)
    found = {one.name for one in (into / "episodes").iterdir()}
    assert found == {"main.jsonl", "main.finished", "earlier.kept"}
    assert (into / "session.json").is_file()


def test_the_name_of_an_artifact_is_no_pattern(rig: Rig, tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()
    fetch(rig, own_run(rig, FILES, name="evals [3.13]"), into, "evals [3.13]")
    assert (into / "session.json").is_file()
    with pytest.raises(InputError, match="this run has 0 artifacts"):
        fetch(rig, own_run(rig, FILES), tmp_path, "agent-eval-*")


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": "other"}, "this run has 0 artifacts 'agent-eval-report'"),
        ({"head_sha": "9" * 40}, "its run is about commit 999"),
        ({"files": {"nested/session.json": "{}"}}, "holds no session.json"),
    ],
)
def test_another_artifact_is_refused(
    rig: Rig, tmp_path: Path, fields: dict[str, Any], sentence: str
) -> None:
    into = tmp_path / "into"
    into.mkdir()
    run_id = own_run(rig, **{"files": FILES, **fields})
    with pytest.raises(InputError, match=sentence):
        fetch(rig, run_id, into)


@pytest.mark.parametrize(("attempt", "warnings"), [("1", 0), ("2", 1)])
def test_without_an_artifact_everything_runs(attempt: str, warnings: int) -> None:
    said: list[str] = []
    inputs = ActionInputs(resume_artifact=NAME)  # and no token
    environ = {"GITHUB_RUN_ATTEMPT": attempt}
    with download_earlier_attempt(
        inputs, pull_event(run_id=1), environ, lambda _, text: said.append(text)
    ) as folder:
        assert folder is None
    assert len(said) == warnings
    assert all(text.startswith("resume-artifact: everything runs, because ") for text in said)
