"""The repository's own workflow under act, a runner that others wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.container.conftest import HEAD, commit_as_shop, pull_request_event
from tests.container.engine import BASE, ROOT, run

pytestmark = [pytest.mark.container, pytest.mark.timeout(1200)]


def own_workflow() -> dict:
    """Return the workflow of this repository without its upload, which needs GitHub itself."""
    yaml = YAML(typ="safe")
    workflow = yaml.load(ROOT / ".github/workflows/agent-eval.yml")
    (job,) = workflow["jobs"].values()
    job["steps"] = [s for s in job["steps"] if "upload-artifact" not in s.get("uses", "")]
    return workflow


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone's worth of files that act takes for octo/shop."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("action.yml", "Dockerfile"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(
        ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    workflow = folder / ".github" / "workflows" / "agent-eval.yml"
    workflow.parent.mkdir(parents=True)
    YAML().dump(own_workflow(), workflow)
    commit_as_shop(folder)
    return folder


def test_own_workflow_ends_as_it_says(act, image, github, checkout, tmp_path):
    """act finds the image by the name it would give its own build.

    Its build cannot be told to use the host's network, so on an engine without a bridge network
    it could not install anything; with ``--rebuild=false`` it takes the image that is there.
    """
    fake = github()
    event = tmp_path / "event.json"
    event.write_text(json.dumps(pull_request_event()), encoding="utf-8")
    assert run(["docker", "tag", image, "act-dockeraction:latest"]).returncode == 0

    where = ["--directory", checkout, "--eventpath", event]
    images = ["--platform", f"ubuntu-latest={BASE}", "--pull=false", "--rebuild=false"]
    network = ["--network", "host", "--container-daemon-socket", "-", "--no-cache-server"]
    world = ["--env", f"GITHUB_API_URL={fake.url}", "--secret", "GITHUB_TOKEN=ghs_fake"]
    command = [act, "pull_request", *where, *images, *network, *world]

    done = run(command, timeout=300, HOME=str(tmp_path))

    assert done.returncode == 0, done.stdout
    assert "outcome: failure, conclusion: failure" in done.stdout
    (comment,) = fake.shop()["comments"]
    assert "refund_over_limit" in comment["body"]
    (check_run,) = fake.shop()["check_runs"]
    assert (check_run["status"], check_run["conclusion"]) == ("completed", "failure")
    assert check_run["head_sha"] == HEAD
    assert check_run["annotations"]
