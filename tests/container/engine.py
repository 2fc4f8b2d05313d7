"""A container engine and GitHub's runner, as far as the container tests need them."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
BASE = "python:3.13-slim-trixie"
"""The Dockerfile's default base."""

UP = ROOT.parent / "shared" / "container" / "up"
"""A script that gives a machine without an engine one; there only on some machines."""

_CONTEXT = ("Dockerfile", ".dockerignore", "pyproject.toml", "README.md", "LICENSE")


def run(
    arguments: Iterable[str | Path], *, timeout: float = 600, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program, both streams as one text; its exit status is the caller's to judge."""
    return subprocess.run(
        [str(argument) for argument in arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )


def _succeeds(*arguments: str) -> bool:
    try:
        return run(arguments, timeout=60).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


def missing_engine() -> str:
    """Return why no engine can be used, "" when one can; starts one where ``UP`` is there."""
    ready = _succeeds("docker", "info")
    if UP.exists() and not (ready and _succeeds("docker", "image", "inspect", BASE)):
        started = run([UP, BASE])
        if started.returncode != 0:
            return f"no container engine: {UP.name} failed: {started.stdout[-400:]}"
        return ""
    return "" if ready else "no container engine: `docker info` failed, and there is no script"


def content_tag() -> str:
    """Return a tag that changes with what the image is made of."""
    digest = hashlib.sha256()
    folders = (ROOT / "ci_agent_eval", ROOT / "requirements")
    found = [path for folder in folders for path in folder.rglob("*") if path.suffix != ".pyc"]
    for path in sorted([*found, *(ROOT / name for name in _CONTEXT)]):
        if path.is_file():
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def build(image: str) -> None:
    """Build the Dockerfile; AssertionError with the builder's output when it fails."""
    buildkit = "1" if _succeeds("docker", "buildx", "version") else "0"
    built = run(
        ["docker", "build", "--network", "host", "--tag", image, "."],
        timeout=900,
        DOCKER_BUILDKIT=buildkit,
    )
    assert built.returncode == 0, built.stdout


@dataclass(frozen=True)
class Ran:
    """What one step left behind."""

    status: int
    log: str
    summary: str
    outputs: dict[str, str]


@dataclass(frozen=True)
class Runner:
    """GitHub's runner for Docker actions: its mounts, its variables, its working folder.

    The mounts and names are those of the runner's ``ContainerActionHandler.cs``.
    """

    image: str
    home: Path
    inputs: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        """The folder the job checked the repository out into."""
        return self.home / "workspace"

    @property
    def event(self) -> Path:
        """The file that holds the webhook's payload."""
        return self.home / "workflow" / "event.json"

    def step(self, **inputs: str) -> Ran:
        """Run the action once; a keyword's ``_`` stands for the ``-`` of an input's name."""
        commands = self.home / "file_commands"
        for name in ("summary", "output"):
            (commands / name).write_text("", encoding="utf-8")
        given = {**self.inputs, **{name.replace("_", "-"): text for name, text in inputs.items()}}
        done = run(self._command(given), timeout=300)
        return Ran(
            status=done.returncode,
            log=done.stdout,
            summary=(commands / "summary").read_text("utf-8"),
            outputs=parse_outputs((commands / "output").read_text("utf-8")),
        )

    def _command(self, inputs: Mapping[str, str]) -> list[str]:
        variables = {**_VARIABLES, **self.environment, **input_variables(inputs)}
        command = ["docker", "run", "--rm", "--workdir", "/github/workspace", "--network", "host"]
        for name in ("workspace", "workflow", "file_commands", "home"):
            command += ["-v", f"{self.home / name}:/github/{name}"]
        for name, text in variables.items():
            command += ["-e", f"{name}={text}"]
        return [*command, self.image]


_VARIABLES = {
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_EVENT_PATH": "/github/workflow/event.json",
    "GITHUB_JOB": "agent-eval",
    "GITHUB_OUTPUT": "/github/file_commands/output",
    "GITHUB_REF": "refs/pull/7/merge",
    "GITHUB_REPOSITORY": "octo/shop",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_RUN_ID": "4242",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_SHA": "b" * 40,
    "GITHUB_STEP_SUMMARY": "/github/file_commands/summary",
    "GITHUB_WORKFLOW": "agent-eval",
    "GITHUB_WORKSPACE": "/github/workspace",
    "HOME": "/github/home",
    "RUNNER_OS": "Linux",
    "RUNNER_TEMP": "/tmp",  # the runner's own value inside a container
}


def input_variables(inputs: Mapping[str, str]) -> dict[str, str]:
    """Return the variables the runner makes of inputs: upper case, spaces to _, hyphens kept."""
    return {f"INPUT_{name.upper().replace(' ', '_')}": text for name, text in inputs.items()}


def parse_outputs(text: str) -> dict[str, str]:
    """Return what a ``GITHUB_OUTPUT`` file says: ``name=value`` and ``name<<MARK`` blocks."""
    found: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, equals, value = line.partition("=")
        block, heredoc, mark = line.partition("<<")
        if heredoc and (not equals or len(block) < len(name)):
            found[block] = "\n".join(iter(lambda end=mark: _until(lines, end), None))
        elif equals:
            found[name] = value
    return found


def _until(lines: Iterable[str], end: str) -> str | None:
    """Return the next line, None at the mark or when the file ends without it."""
    line = next(iter(lines), end)
    return None if line == end else line
