"""`agent-eval init`: the files fit the project, and nothing that exists is changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

WORKFLOW = ".github/workflows/agent-eval.yml"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(tmp_path)], check=True)
    return tmp_path


def read_files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".git/" not in path.relative_to(folder).as_posix()
    }


def find_step(folder: Path, name: str = WORKFLOW) -> dict:
    """Return the first step with the action."""
    jobs = YAML(typ="safe").load((folder / name).read_text())["jobs"]
    return next(
        step
        for job in jobs.values()
        for step in job["steps"]
        if "agent-eval-action" in step.get("uses", "")
    )


def test_first_files_make_a_suite_that_passes(agent_eval, repository):
    done = agent_eval("init")

    assert done.returncode == 0
    assert f"wrote: {WORKFLOW}" in done.stdout
    assert agent_eval("run", "tests/episodes").returncode == 0
    assert "install" not in find_step(repository)["with"]


def test_second_run_changes_nothing(agent_eval, repository):
    agent_eval("init")
    before = read_files(repository)

    again = agent_eval("init")

    assert again.returncode == 0
    assert f"left as it is: {WORKFLOW}" in again.stdout
    assert "wrote" not in again.stdout
    assert read_files(repository) == before


def test_files_of_the_author_are_left_as_they_are(agent_eval, repository):
    (repository / ".github/workflows").mkdir(parents=True)
    (repository / WORKFLOW).write_text("mine")

    done = agent_eval("init")

    assert done.returncode == 0
    assert f"left as it is: {WORKFLOW}" in done.stdout
    assert (repository / WORKFLOW).read_text() == "mine"


def test_agent_of_a_framework_gets_a_test_and_its_key(agent_eval, repository):
    (repository / "requirements.txt").write_text("openai-agents>=0.2\n")
    (repository / "desk").mkdir()
    (repository / "desk/main.py").write_text(
        "from agents import Agent\nfaq = Agent(name='faq')\ntriage = Agent(name='triage')\n"
    )

    done = agent_eval("init")

    assert "framework: OpenAI Agents SDK" in done.stdout
    assert "agent: triage in desk/main.py" in done.stdout
    test = (repository / "tests/episodes/test_first_episode.py").read_text()
    assert "from desk.main import triage\n" in test
    assert "await aitest_run(triage, " in test
    step = find_step(repository)
    assert step["env"] == {"OPENAI_API_KEY": "${{ secrets.OPENAI_API_KEY }}"}
    assert step["with"]["install"].splitlines() == [
        "pip install -r requirements.txt",
        (
            "pip install 'ci-agent-eval[pytest,traffic] @ "
            "git+https://github.com/org/agent-eval-action@v1'"
        ),
    ]


@pytest.mark.parametrize(
    ("project", "command"),
    [
        ("", "pip install ."),
        ("[project.optional-dependencies]\ntest = ['x']", "pip install '.[test]'"),
        ("[dependency-groups]\ndev = ['x']", "pip install . --group pyproject.toml:dev"),
    ],
)
def test_project_is_installed_with_what_its_tests_need(agent_eval, repository, project, command):
    (repository / "pyproject.toml").write_text(project)

    agent_eval("init")

    assert find_step(repository)["with"]["install"] == f"{command}\n"


def test_folder_of_a_larger_repository_is_set_up_alone(agent_eval, repository):
    folder = repository / "services/desk"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntestpaths = ['checks']\n")

    done = agent_eval("init", cwd=folder)

    assert "folder: services/desk/" in done.stdout
    assert "run the suite: agent-eval run checks/episodes" in done.stdout
    assert set(read_files(repository)) == {
        WORKFLOW,
        "services/desk/pyproject.toml",
        "services/desk/agent-eval.toml",
        "services/desk/checks/episodes/test_first_episode.py",
    }
    assert find_step(repository)["with"] == {
        "install": "pip install ./services/desk\n",
        "paths": "services/desk/checks/episodes",
        "config": "services/desk/agent-eval.toml",
        "baseline": "artifact",
        "publish": "false",
    }


@pytest.mark.parametrize(
    ("flags", "present", "absent"),
    [
        (["--no-baseline"], ["pull_request:"], ["push:", "baseline:"]),
        (["--shards", "3"], ["shard: [1, 2, 3]", "baseline: artifact"], []),
        (["--no-docker"], ["agent-eval run tests/episodes", "agent-eval publish"], ["docker"]),
        (["--no-docker", "--shards", "2"], ["--shard ${{ matrix.shard }}/2"], []),
    ],
)
def test_flags_choose_the_workflow(agent_eval, repository, flags, present, absent):
    assert agent_eval("init", *flags).returncode == 0

    text = (repository / WORKFLOW).read_text()
    assert [part for part in present if part not in text] == []
    assert [part for part in absent if part in text] == []


def test_forks_get_no_secrets_and_a_second_workflow(agent_eval, repository):
    (repository / "requirements.txt").write_text("openai-agents\n")

    agent_eval("init", "--forks")

    assert "secrets" not in (repository / WORKFLOW).read_text()
    publish = find_step(repository, ".github/workflows/agent-eval-publish.yml")
    assert publish["with"] == {"mode": "publish", "baseline": "artifact", "publish": "false"}


@pytest.mark.parametrize("flags", [["--forks", "--shards", "2"], ["--forks", "--no-docker"]])
def test_choices_that_do_not_fit_are_refused(agent_eval, repository, flags):
    done = agent_eval("init", *flags)

    assert done.returncode == 2
    assert "--forks" in done.stderr
    assert read_files(repository) == {}


def test_outside_of_a_repository_nothing_is_written(agent_eval, tmp_path):
    done = agent_eval("init")

    assert done.returncode == 2
    assert "is in no git repository" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_unreadable_project_file_is_one_sentence(agent_eval, repository):
    (repository / "pyproject.toml").write_text("[project")

    done = agent_eval("init")

    assert done.returncode == 2
    assert "pyproject.toml: it cannot be read" in done.stderr
