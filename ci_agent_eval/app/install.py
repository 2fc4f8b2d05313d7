"""Install commands of a suite, which run in its virtual environment without a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor
from ci_agent_eval.runner.suite import filter_suite_environ

Echo = Callable[[str], None]

LOCK = Path("/opt/suite.txt")
"""What the image installs beside a suite, with hashes."""

_LAST_LINES = 10
"""Lines of a failed command's output that the report shows."""
_MAX_LINE = 300
"""Characters of such a line."""


def run_install_commands(
    commands: Sequence[Sequence[str]],
    python: str,
    *,
    root: Path,
    environ: Mapping[str, str],
    echo: Echo,
) -> str | None:
    """Run the commands in order in `root`, for the environment of the interpreter `python`.

    Return the first failure with the last lines of its output, or None.
    """
    suite_environ = filter_suite_environ(environ)
    folder = Path(python).parent
    suite_environ["PATH"] = f"{folder}{os.pathsep}{suite_environ.get('PATH', os.defpath)}"
    suite_environ["VIRTUAL_ENV"] = str(folder.parent)
    redactor = Redactor.from_environ(environ)

    last: deque[str] = deque(maxlen=_LAST_LINES)

    def show(output: IO[str]) -> None:
        for line in redactor.lines(output):
            echo(line)
            last.append(line.rstrip()[:_MAX_LINE])

    for words in commands:
        command_line = redactor.text(" ".join(words))
        echo(f"$ {command_line}")
        last.clear()
        problem = _run_command(words, suite_environ, root, show)
        if problem is not None:
            return "\n".join([f"`{command_line}` {problem}; the suite did not run", *last])
    return None


@contextmanager
def create_suite_environment(
    version: str, *, root: Path, environ: Mapping[str, str], echo: Echo
) -> Iterator[str]:
    """Yield the interpreter of a temporary environment with pip and what the plugin needs.

    uv is searched on the PATH, then beside our own interpreter. Raises InputError.
    """
    folders = f"{environ.get('PATH', os.defpath)}{os.pathsep}{Path(sys.executable).parent}"
    uv = shutil.which("uv", path=folders)
    if uv is None:
        raise InputError("input python-version: there is no uv, which the action's image has")
    with tempfile.TemporaryDirectory(prefix="agent-eval-python-") as temporary:
        target = Path(temporary) / "suite"
        python = str(target / "bin/python")
        packages = ("--requirement", str(LOCK)) if LOCK.exists() else ("pytest", "pydantic")
        commands = (
            (uv, "venv", "--no-config", "--no-project", "--seed", "--python", version, str(target)),
            (uv, "pip", "install", "--no-config", "--python", python, *packages),
        )
        around = {**environ, "UV_PYTHON_INSTALL_DIR": f"{temporary}/python", "UV_NO_CACHE": "1"}
        problem = run_install_commands(commands, python, root=root, environ=around, echo=echo)
        if problem is not None:
            raise InputError(f"input python-version: {problem}")
        yield python


def _run_command(
    words: Sequence[str], environ: Mapping[str, str], root: Path, show: Callable[[IO[str]], None]
) -> str | None:
    """Run one command and show its output; return the problem, or None."""
    try:
        process = subprocess.Popen(
            words,
            env=environ,
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        return f"could not be started ({error.strerror})"
    with process:
        if process.stdout is not None:
            show(process.stdout)
    return None if process.returncode == 0 else f"exited with status {process.returncode}"
