"""`agent-eval doctor`: each kind of broken set-up is found, and a good one is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

WORKFLOW = ".github/workflows/agent-eval.yml"
PUBLISH = ".github/workflows/agent-eval-publish.yml"


@pytest.fixture
def repository(agent_eval, tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    assert agent_eval("init").returncode == 0
    return tmp_path


def edit(folder: Path, old: str, new: str, name: str = WORKFLOW) -> None:
    path = folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--shards", "2"],
        ["--no-docker"],
        ["--no-docker", "--shards", "2"],
        ["--forks"],
    ],
)
def test_files_of_init_have_no_problem(agent_eval, tmp_path, flags):
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    agent_eval("init", *flags)

    done = agent_eval("doctor")

    assert done.returncode == 0, done.stdout
    assert "problem" not in done.stdout
    assert f"ok       {WORKFLOW}: its jobs have what they need" in done.stdout
    assert "the check to require for 'main' is 'agent-eval'" in done.stdout


PROBLEMS = {
    "comment": ("pull-requests: write", "pull-requests: read", "`pull-requests: write`"),
    "check run": ("      checks: write # to create the check run\n", "", "`checks: write`"),
    "artifacts": ("actions: read", "actions: none", "`actions: read`"),
    "path": ("paths: tests/episodes", "paths: tests/agents", "path 'tests/agents' does not exist"),
    "config": ("baseline: artifact", "config: x.toml", "configuration 'x.toml' does not exist"),
    "baseline": (
        "branches: [main]",
        "branches: [develop]",
        "no workflow that uploads them runs there",
    ),
    "publish": (
        "mode: publish",
        'mode: publish\n          publish: "false"',
        "no later step of its job publishes the report",
    ),
    "target": ("pull_request:", "pull_request_target:", "gives the code of forks"),
    "yaml": ("permissions: {}", "permissions: {", "is no YAML"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_problem_is_found_with_its_remedy(agent_eval, repository, case):
    old, new, expected = PROBLEMS[case]
    edit(repository, old, new)

    done = agent_eval("doctor")

    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if expected in line]
    assert lines
    assert all(line.startswith(f"problem  {WORKFLOW}") for line in lines)


def test_paths_with_an_expression_are_not_checked(agent_eval, repository):
    edit(repository, "paths: tests/episodes", "paths: tests/episodes ${{ matrix.folder }}/agents")

    done = agent_eval("doctor")

    assert done.returncode == 0, done.stdout


def test_folder_without_tests_is_found(agent_eval, repository):
    (repository / "tests/episodes/test_first_episode.py").unlink()

    done = agent_eval("doctor")

    assert done.returncode == 1
    assert "its path 'tests/episodes' contains no test file" in done.stdout


def test_publishing_workflow_that_waits_for_another_name_is_found(agent_eval, tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    agent_eval("init", "--forks")
    edit(tmp_path, "workflows: [agent-eval]", "workflows: [Agent tests]", PUBLISH)

    done = agent_eval("doctor")

    assert done.returncode == 1
    assert "it waits for runs of 'Agent tests'" in done.stdout
    assert "these are: agent-eval" in done.stdout


def test_repository_without_a_workflow_is_told_to_write_one(agent_eval, tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    done = agent_eval("doctor")

    assert done.returncode == 1
    assert "no workflow runs the suite; write one with `agent-eval init`" in done.stdout


def test_invalid_settings_are_found(agent_eval, repository):
    (repository / "agent-eval.toml").write_text("[gate]\nmin_pass_rate = 7\n")

    done = agent_eval("doctor")

    assert done.returncode == 1
    assert "problem  settings: agent-eval.toml" in done.stdout


def test_permissions_that_are_not_stated_are_noted(agent_eval, repository):
    text = (repository / WORKFLOW).read_text()
    before, _, rest = text.partition("    permissions:\n")
    (repository / WORKFLOW).write_text(
        before.replace("permissions: {}\n", "")
        + rest.partition("    steps:\n")[2].join(["    steps:\n", ""])
    )

    done = agent_eval("doctor")

    assert done.returncode == 0
    assert "states no permissions, so they are the repository's default; it needs" in done.stdout
