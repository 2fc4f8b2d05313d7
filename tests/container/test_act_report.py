"""All steps of the action without Docker under act, on this machine in place of a container."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.container.conftest import HEAD, commit_as_shop, pull_request_event
from tests.container.engine import ROOT, run

pytestmark = [pytest.mark.container, pytest.mark.timeout(1200)]

JUNIT = '<testsuite name="shop"><testcase classname="a" name="test_bad"><failure>no</failure></testcase></testsuite>'
CHECK = 'echo "outcome: $OUTCOME, conclusion: $CONCLUSION"'


def setup_python(folder: Path) -> str:
    """Make a stand-in for actions/setup-python, which downloads; return its name in report/action.yml."""
    folder.mkdir()
    output = f'echo "python-path={sys.executable}" >> "$GITHUB_OUTPUT"'
    step = {"id": "find", "shell": "bash", "run": output}
    value = {"value": "${{ steps.find.outputs.python-path }}"}
    stand_in = {
        "name": "setup-python",
        "inputs": {"python-version": {}, "update-environment": {}},
        "outputs": {"python-path": value},
        "runs": {"using": "composite", "steps": [step]},
    }
    YAML().dump(stand_in, folder / "action.yml")
    action = YAML(typ="safe").load(ROOT / "report/action.yml")
    return next(step["uses"] for step in action["runs"]["steps"] if "uses" in step)


def copy_action(folder: Path) -> Path:
    """Copy what the action uses of this repository, for act copies it twice."""
    for name in ("ci_agent_eval", "report", "requirements"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository whose workflow runs the action of this one."""
    folder = tmp_path / "checkout"
    report = {
        "id": "report",
        "uses": "org/agent-eval-action/report@v1",
        "continue-on-error": True,
        "with": {"junit": "shop.xml", "github-token": "${{ github.token }}"},
    }
    environ = {
        "OUTCOME": "${{ steps.report.outcome }}",
        "CONCLUSION": "${{ steps.report.outputs.conclusion }}",
    }
    tests = {"run": f"echo '{JUNIT}' > shop.xml"}
    job = {"runs-on": "ubuntu-latest", "steps": [tests, report, {"run": CHECK, "env": environ}]}
    workflow = folder / ".github/workflows/report.yml"
    workflow.parent.mkdir(parents=True)
    YAML().dump({"on": "pull_request", "jobs": {"report": job}}, workflow)
    commit_as_shop(folder)
    return folder


def test_reports_without_docker(act, github, checkout, tmp_path):
    fake = github()
    event = tmp_path / "event.json"
    event.write_text(json.dumps(pull_request_event()), encoding="utf-8")
    local = f"{setup_python(tmp_path / 'setup-python')}={tmp_path / 'setup-python'}"
    ours = f"org/agent-eval-action@v1={copy_action(tmp_path / 'action')}"

    where = ["--directory", checkout, "--eventpath", event, "--no-cache-server"]
    machine = ["--platform", "ubuntu-latest=-self-hosted", "--container-daemon-socket", "-"]
    actions = ["--local-repository", local, "--local-repository", ours]
    world = ["--env", f"GITHUB_API_URL={fake.url}", "--secret", "GITHUB_TOKEN=ghs_fake"]
    done = run(
        [act, "pull_request", *where, *machine, *actions, *world], timeout=300, HOME=str(tmp_path)
    )

    assert done.returncode == 0, done.stdout
    assert "outcome: failure, conclusion: failure" in done.stdout
    (comment,) = fake.shop()["comments"]
    assert "Tests failed: 1 of 1" in comment["body"]
    (check_run,) = fake.shop()["check_runs"]
    assert (check_run["status"], check_run["conclusion"]) == ("completed", "failure")
    assert check_run["head_sha"] == HEAD
