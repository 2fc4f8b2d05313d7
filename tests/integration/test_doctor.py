"""`agent-eval doctor`: each kind of broken set-up is found, and a good one is not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.github_fake import FakeGitHub
from tests.processes import run_agent_eval

WORKFLOW = ".github/workflows/agent-eval.yml"
PUBLISH = ".github/workflows/fork-publish.yml"
DOCS = Path(__file__).parents[2] / "docs/workflows"
COMMENT = ("      pull-requests: write # to post the comment\n", "")
CHECK_RUN = ("      checks: write # to create the check run\n", "")
NO_COMMENT = ("mode: publish", 'mode: publish\n          comment: "off"')
NO_CHECK_RUN = ('comment: "off"', 'comment: "off"\n          check-run: "false"')
READ_ALL = (
    "permissions:\n      contents: read # to read the suite\n",
    "permissions: read-all\n    env:\n      A: b\n",
)
NO_PERMISSIONS = ("    permissions:\n", None)


@dataclass
class Case:
    """A repository that `init` set up, what its author changed, and what GitHub knows of it."""

    workflows: tuple[str, ...] | None = ()
    """Files of docs/workflows in place of the one that `init` writes; None: there is no workflow."""
    edits: tuple[tuple[str, str | None], ...] = ()
    file: str = WORKFLOW
    token: str = "ghp_reader"
    remote: str | None = None
    github: dict[str, Any] | None = field(default_factory=dict)
    """The settings of the repository; None: GitHub has no such one."""

    def make(self, root: Path) -> None:
        subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
        if self.workflows == ():
            run_agent_eval("init", cwd=root)
        for name in self.workflows or ():
            target = root / ".github/workflows" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(DOCS / name, target)
        for old, new in self.edits:
            text = (root / self.file).read_text()
            assert old in text, old
            if new is None:  # a job without its permissions, in a workflow without any
                head, _, rest = text.partition(old)
                text = head.replace("permissions: {}\n", "") + rest[rest.index("    steps:") :]
            (root / self.file).write_text(text.replace(old, new or ""))
        if self.remote is not None:
            words = ("remote", "add", "origin", self.remote)
            subprocess.run(["git", "-C", str(root), *words], check=True)


def known(token="ghp_reader", edits=(), **settings):
    return Case((), edits, token=token, remote="git@github.com:octo/shop.git", github=settings)


CASES = {
    "init": Case(),
    "shards": Case(("shards.yml",)),
    "no Docker": Case(("no-docker.yml",)),
    "forks": Case(("fork-run.yml", "fork-publish.yml")),
    # Permissions that are missing, and that are not needed
    "no comments": Case(edits=(("pull-requests: write", "pull-requests: read"),)),
    "no check runs": Case(edits=(CHECK_RUN,)),
    "no artifacts": Case(edits=(("actions: read", "actions: none"),)),
    "no contents": Case(edits=(("contents: read # to read the suite", "issues: write"),)),
    "all for reading": Case(edits=(READ_ALL,)),
    "no YAML": Case(edits=(("permissions: {}", "permissions: {"),)),
    "what takes over reads no artifacts": Case(("fork-publish.yml",), (("actions: read", "actions: none"),), PUBLISH),
    "no comment is asked for": Case(edits=(COMMENT, NO_COMMENT)),
    "nothing is published": Case(edits=(COMMENT, NO_COMMENT, CHECK_RUN, NO_CHECK_RUN)),
    "no workflow": Case(None),
    # What GitHub says
    "a protected branch": known(protected_checks=("lint", "agent-eval")),
    "a ruleset": known(ruleset_checks=("lint", "agent-eval")),
    "nothing is required": known(),
    "a job is required": known(protected_checks=("Agent episodes",)),
    "a job without permissions": Case(edits=(NO_PERMISSIONS,)),
    "a repository that is not there": Case(remote="git@github.com:octo/shop.git", github=None),
    "a bad token": known("ghp_unknown"),
    "a repository elsewhere": Case(remote="https://gitlab.com/octo/shop.git"),
}  # fmt: skip


def describe(name: str, root: Path) -> str:
    case = CASES[name]
    case.make(root)
    with FakeGitHub() as fake:
        fake.token("ghp_reader", "octocat")
        if case.github is not None:
            fake.add_repo("octo/shop", **case.github)
        environ = {"GITHUB_API_URL": fake.url, "GITHUB_TOKEN": case.token}
        # A token is sent for no repository of another host.
        done = run_agent_eval("doctor", cwd=root, **(environ if case.remote else {}))
        assert fake.violations == []
        asked = f"{len(fake.requests)} requests"
    text = f"# {name}: exit {done.returncode}, {asked}\n{done.stdout}{done.stderr}"
    for old, new in (
        (sys.executable, "python"),
        (pytest.__version__, "9"),
        (fake.url, "https://api"),
    ):
        text = text.replace(old, new)
    return text


def test_what_is_found_is_the_golden_text(golden, tmp_path):
    texts = [describe(name, tmp_path / str(at)) for at, name in enumerate(CASES)]
    golden("setup/doctor.txt", "\n".join(texts))
