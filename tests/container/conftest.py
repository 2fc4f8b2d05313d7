"""The engine, the image, GitHub's fake as a process, and a runner's folders."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.container.engine import ROOT, Runner, build, content_tag, missing_engine, run
from tests.processes import declared_inputs

HEAD = "a" * 40
"""The pull request's head commit; the event's merge commit is another."""


@pytest.fixture(scope="session")
def engine() -> None:
    """A container engine that answers; without one the tests are skipped and say why."""
    if reason := missing_engine():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def image(engine: None) -> str:
    """The action's image, built from the working tree by the real engine."""
    name = f"agent-eval-test:{content_tag()}"
    build(name)
    return name


ACT = "v0.2.89"


@dataclass(frozen=True)
class Fake:
    """GitHub's fake in its own process."""

    url: str
    process: subprocess.Popen[bytes]

    def state(self) -> dict[str, Any]:
        """Return the repositories, the request log and the violations."""
        with urllib.request.urlopen(f"{self.url}/_fake/state") as reply:
            return json.load(reply)

    def shop(self) -> dict[str, Any]:
        """Return the one repository, once nothing broke GitHub's description."""
        state = self.state()
        assert state["violations"] == []
        return state["repositories"]["octo/shop"]


def _read_port(path: Path, process: subprocess.Popen[bytes]) -> str:
    """Return the port as soon as it is written; the fake closes its stdout only by ending."""
    while not path.exists():
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"the fake ended with {process.returncode}")
    return path.read_text("utf-8").strip()


@pytest.fixture
def github(tmp_path: Path) -> Iterator[Callable[[], Fake]]:
    """Start fakes, as ``tests.github_fake`` documents them."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> Fake:
        port_file = tmp_path / f"port-{len(started)}"
        command = [sys.executable, "-m", "tests.github_fake", "--port-file", str(port_file)]
        started.append(subprocess.Popen(command, cwd=ROOT))
        return Fake(f"http://127.0.0.1:{_read_port(port_file, started[-1])}", started[-1])

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def pull_request_event() -> dict[str, Any]:
    """Return as much of a pull_request event as the runner's file holds for us."""
    repository = {"full_name": "octo/shop", "name": "shop", "owner": {"login": "octo"}}
    head = {"sha": HEAD, "ref": "topic", "repo": repository}
    base = {"sha": "c" * 40, "ref": "main", "repo": repository}
    return {
        "action": "synchronize",
        "number": 7,
        "pull_request": {"number": 7, "head": head, "base": base},
        "repository": repository,
    }


def install_go_program(source: str) -> Path:
    """Return the program of a pinned Go package, built once and kept in the user's cache."""
    package, _, version = source.partition("@")
    name = package.rpartition("/")[2]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    program = cache / "ci-agent-eval" / f"{name}-{version}" / name
    if not program.exists():
        if shutil.which("go") is None:
            pytest.skip(f"{name}: no Go toolchain here to build it with")
        built = run(["go", "install", source], timeout=600, GOBIN=str(program.parent))
        if built.returncode != 0:
            pytest.skip(f"{name}: `go install {source}` failed: {built.stdout[-400:]}")
    return program


@pytest.fixture(scope="session")
def act() -> Path:
    """act, a runner that others wrote."""
    return install_go_program(f"github.com/nektos/act@{ACT}")


def commit_as_shop(folder: Path) -> None:
    """Commit a folder in a new repository that act takes for octo/shop."""
    author = ["-c", "user.name=octocat", "-c", "user.email=octocat@example.com"]
    for command in (
        ["init", "--quiet", "--initial-branch", "main"],
        ["remote", "add", "origin", "https://github.com/octo/shop"],
        ["add", "--all"],
        [*author, "commit", "--quiet", "--message", "start"],
    ):
        done = run(["git", "-C", folder, *command])
        assert done.returncode == 0, done.stdout


@pytest.fixture
def runner(tmp_path: Path, image: str) -> Iterator[Callable[[Fake], Runner]]:
    """Make a runner whose workspace holds the example and whose API is the given fake."""
    home = tmp_path / "runner"
    for name in ("workspace", "workflow", "file_commands", "home"):
        (home / name).mkdir(parents=True)
    shutil.copytree(
        ROOT / "examples",
        home / "workspace" / "examples",
        ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"),
    )
    assert run(["git", "init", "--quiet", home / "workspace"]).returncode == 0

    def make(fake: Fake) -> Runner:
        made = Runner(
            image=image,
            home=home,
            inputs={
                **declared_inputs(YAML(typ="safe").load(ROOT / "action.yml")),
                "github-token": "ghs_fake",
            },
            environment={"GITHUB_API_URL": fake.url},
        )
        made.event.write_text(json.dumps(pull_request_event()), encoding="utf-8")
        return made

    yield make
    # The container writes as root; pytest removes the folder as whoever runs it.
    owner = f"{os.getuid()}:{os.getgid()}"
    chown = ["--entrypoint", "/bin/chown", image, "-R", owner, "/home_of_runner"]
    run(["docker", "run", "--rm", "--network", "none", "-v", f"{home}:/home_of_runner", *chown])
