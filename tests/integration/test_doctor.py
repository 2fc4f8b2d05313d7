"""`agent-eval doctor`: each kind of broken set-up is found, and a good one is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.github_fake import FakeGitHub

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
    [[], ["--shards", "2"], ["--no-docker"], ["--no-docker", "--shards", "2"], ["--forks"]],
)
def test_files_of_init_have_no_problem(agent_eval, tmp_path, flags):
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    agent_eval("init", *flags)

    done = agent_eval("doctor")

    assert done.returncode == 0, done.stdout
    assert "problem" not in done.stdout
    assert f"ok       {WORKFLOW}: job 'Agent episodes' has the permissions it needs" in done.stdout
    assert "the check to require for 'main' is 'agent-eval'" in done.stdout


PROBLEMS = {
    "comment": ("pull-requests: write", "pull-requests: read", "lacks the permission `pull-"),
    "check run": ("      checks: write # to create the check run\n", "", "`checks: write`; add it"),
    "artifacts": ("actions: read", "actions: none", "`actions: read`"),
    "contents": ("contents: read # to read the suite", "issues: write", "`contents: read`"),
    "all for reading": (
        "permissions:\n      contents: read # to read the suite\n",
        "permissions: read-all\n    env:\n      A: b\n",
        "write`",
    ),
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


def test_a_workflow_that_takes_over_results_needs_to_read_artifacts(agent_eval, tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    agent_eval("init", "--forks")
    edit(tmp_path, "actions: read", "actions: none", PUBLISH)

    done = agent_eval("doctor")

    assert done.returncode == 1
    assert f"{PUBLISH}: job 'Publish agent episodes' lacks the permission `actions:" in done.stdout


def test_an_input_that_publishes_nothing_needs_no_permission(agent_eval, repository):
    edit(repository, "      pull-requests: write # to post the comment\n", "")
    edit(repository, "mode: publish", 'mode: publish\n          comment: "off"')
    assert agent_eval("doctor").returncode == 0
    edit(repository, "      checks: write # to create the check run\n", "")
    edit(repository, 'comment: "off"', 'comment: "off"\n          check-run: "false"')

    done = agent_eval("doctor")

    assert done.returncode == 0, done.stdout
    assert "the check to require" not in done.stdout


def test_repository_without_a_workflow_is_told_to_write_one(agent_eval, tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    done = agent_eval("doctor")

    assert done.returncode == 1
    assert "no workflow runs the suite; write one with `agent-eval init`" in done.stdout


@pytest.fixture
def github():
    with FakeGitHub() as fake:
        fake.token("ghp_reader", "octocat")
        fake.token("ghp_admin", "octocat", is_admin=True)
        yield fake
        assert fake.violations == []


@pytest.fixture
def ask(agent_eval, repository, github):
    """Run `agent-eval doctor` with a token, for a repository with these settings."""

    def run(*, token="ghp_reader", name="octo/shop", **settings):
        if name is not None:
            github.add_repo(name, **settings)
        origin = ("remote", "add", "origin", "git@github.com:octo/shop.git")
        subprocess.run(["git", "-C", str(repository), *origin], check=True)
        return agent_eval("doctor", GITHUB_TOKEN=token, GITHUB_API_URL=github.url)

    return run


@pytest.mark.parametrize("kind", ["protected_checks", "ruleset_checks"])
def test_a_required_check_is_found_in_protection_and_rulesets(ask, kind):
    done = ask(**{kind: ("lint", "agent-eval")})
    assert done.returncode == 0, done.stdout
    assert "ok       octo/shop requires 'agent-eval' for 'main'" in done.stdout


@pytest.mark.parametrize(
    ("checks", "words"),
    [((), "(required now: nothing)"), (("Agent episodes",), "(required now: 'Agent episodes')")],
)
def test_a_check_that_is_not_required_is_a_problem(ask, checks, words):
    done = ask(protected_checks=checks)
    assert done.returncode == 1
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("problem"))
    assert line.startswith("problem  octo/shop does not require 'agent-eval' for 'main'")
    assert line.endswith(words)


@pytest.mark.parametrize(
    ("token", "default", "kind"),
    [
        ("ghp_admin", "read", "problem"),
        ("ghp_admin", "write", None),
        ("ghp_reader", "read", "note"),
    ],
)
def test_default_permissions_of_a_job_without_own_ones(ask, repository, token, default, kind):
    path = repository / WORKFLOW
    head, _, rest = path.read_text().partition("    permissions:\n")
    steps = rest[rest.index("    steps:") :]
    path.write_text(head.replace("permissions: {}\n", "") + steps)
    done = ask(token=token, protected_checks=("agent-eval",), default_permissions=default)
    lines = [line for line in done.stdout.splitlines() if "states no permissions" in line]
    assert {line.split()[0] for line in lines} == {kind} - {None}
    assert done.returncode == (kind == "problem")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"name": None}, "Not Found"), ({"token": "ghp_unknown"}, "Bad credentials")],
)
def test_a_repository_that_the_token_may_not_read_is_no_problem(ask, settings, reason):
    done = ask(**settings)
    assert done.returncode == 0, done.stdout
    assert "note     GitHub does not say which checks it requires" in done.stdout
    assert reason in done.stdout
    assert "the check to require for 'main' is 'agent-eval'" in done.stdout


def test_the_token_is_sent_for_no_repository_elsewhere(agent_eval, repository, github):
    origin = ("remote", "add", "origin", "https://gitlab.com/octo/shop.git")
    subprocess.run(["git", "-C", str(repository), *origin], check=True)
    done = agent_eval("doctor", GITHUB_TOKEN="ghp_reader", GITHUB_API_URL=github.url)
    assert (done.returncode, github.requests) == (0, [])
