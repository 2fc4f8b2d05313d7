"""Programs as a person starts them: in a folder, with an environment of which nothing leaks in."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 800
"""After which a program counts as hung; far more than any takes."""

_OUTER = ("GITHUB_", "INPUT_", "PYTEST_", "COV_", "COVERAGE_")
"""Variables of GitHub's runner, and of the pytest and the coverage that run these tests."""


def clean_environ(**extra: str) -> dict[str, str]:
    """Return the environment without what a runner or the tests around it have put there."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_OUTER)}
    return {**kept, "PYTEST_ADDOPTS": "-p no:randomly -p no:hypothesispytest", **extra}


def run_python(*arguments: object, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and return what became of it."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=clean_environ(**environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def run_agent_eval(
    *arguments: object, cwd: Path, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run `agent-eval` with these arguments and return what became of it."""
    return run_python("-m", "ci_agent_eval", *arguments, cwd=cwd, **environ)


@contextmanager
def started_python(
    *arguments: object, cwd: Path, **environ: str
) -> Iterator[subprocess.Popen[str]]:
    """Start Python with these arguments; what it writes is one stream, and it never outlives us."""
    with subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=clean_environ(**environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(process: subprocess.Popen[str], words: str) -> None:
    """Read until the program says these words; AssertionError if it ends without them."""
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if words in line:
            return
    raise AssertionError(f"{words!r} was never said: {''.join(said)}")
