"""Programs as a person starts them: in a folder, with an environment of which nothing leaks in."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from ci_agent_eval.app.cli import main

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
    """Run `agent-eval` with these arguments and return what became of it.

    Commands that run no suite run in this process, unless a variable is for Python.
    """
    words = [str(argument) for argument in arguments]
    runs_no_suite = words[0] in _WITHOUT_SUITE or words[-1] == "--help"
    if words == ["action"]:
        runs_no_suite = environ.get("INPUT_MODE", "run") != "run"
    if runs_no_suite and not any(name.startswith(_OF_PYTHON) for name in environ):
        return _call_agent_eval(words, cwd, clean_environ(COLUMNS="100", **environ))
    return run_python("-m", "ci_agent_eval", *words, cwd=cwd, **environ)


_WITHOUT_SUITE = {
    *("acknowledge", "brief", "compare", "doctor", "init", "judge", "publish", "report", "schema")
}
_OF_PYTHON = ("PYTHON", "TZ", "LC_")


def _call_agent_eval(
    words: list[str], cwd: Path, environ: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Start the command line in a folder and an environment, where importing it is free."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        mock.patch.dict(os.environ, environ, clear=True),
        mock.patch("ci_agent_eval.app.action.keep_environment_private"),  # it lasts for a process
        chdir(cwd),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        status = main(words)
    written = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return subprocess.CompletedProcess(words, status, *written)


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


@dataclass
class TerminalProcess:
    """A program on a pseudo-terminal, and all that it has written there."""

    process: subprocess.Popen[bytes]
    terminal: int
    output: str = ""
    _read: int = 0

    def read_until(self, words: str) -> str:
        """Read on until these words; AssertionError if the program ends without them."""
        while (found := self.output.find(words, self._read)) < 0:
            assert self._read_more(), f"{words!r} was never said: {self.output}"
        before, self._read = self.output[self._read : found], found + len(words)
        return before

    def read_rest(self) -> str:
        """Read to the program's end."""
        while self._read_more():
            pass
        self.process.wait()
        return self.output[self._read :]

    def send(self, text: str) -> None:
        """Type a text."""
        os.write(self.terminal, text.encode())

    def _read_more(self) -> bool:
        data = b""
        with suppress(OSError):  # EIO: nobody has the terminal open any more
            data = os.read(self.terminal, 65536)
        self.output += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


@contextmanager
def started_on_terminal(*arguments: object, cwd: Path, **environ: str) -> Iterator[TerminalProcess]:
    """Start Python with these arguments on a pseudo-terminal of 100 columns."""
    terminal, program_side = pty.openpty()
    fcntl.ioctl(program_side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    known = {"CI": "", "TERM": "xterm", "COLUMNS": "100"}
    environ = {"NO_COLOR": "1"} | known | environ
    process = subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=clean_environ(**environ),
        stdin=program_side,
        stdout=program_side,
        stderr=program_side,
    )
    os.close(program_side)
    try:
        yield TerminalProcess(process, terminal)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def declared_inputs(action: Mapping[str, Any]) -> dict[str, str]:
    """Return every input of an action with its default, as the runner of a fine job passes them."""
    known = {"${{ job.status }}": "success", "${{ strategy.job-total }}": "1"}
    defaults = {name: str(one.get("default", "")) for name, one in action["inputs"].items()}
    return {name: known.get(text, text) for name, text in defaults.items()}
