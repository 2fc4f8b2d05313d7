"""Run `agent-eval` without a new interpreter: fork a process that has loaded its modules.

Each command still has its own process, folder, environment, streams and exit code. Where a fresh
interpreter matters, because a variable is read at its start or a module is hidden or replaced,
use `tests.processes.run_agent_eval`; `run_agent_eval` below does it for Python's own variables.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from tests import processes

PRELOADED = (
    "ci_agent_eval.app.action",
    "ci_agent_eval.app.fork_handoff",
    "ci_agent_eval.app.pipeline",
    "ci_agent_eval.app.report_publication",
    "ci_agent_eval.config.settings",
    "jinja2",
    "junitparser",
    "numpy",
)
READ_AT_START = ("LANG", "LC_", "PYTHON", "TZ")
"""Beginnings of the variables that only a fresh interpreter takes into account."""


def run_agent_eval(
    *arguments: object, cwd: Path, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run `agent-eval` with these arguments, in a forked process, and return its result."""
    if any(name.startswith(READ_AT_START) for name in environ):
        return processes.run_agent_eval(*arguments, cwd=cwd, **environ)
    words = [str(argument) for argument in arguments]
    with TemporaryDirectory() as folder:
        streams = [str(Path(folder, name)) for name in ("stdout", "stderr")]
        code = _server().run(words, str(cwd), processes.clean_environ(**environ), streams)
        stdout, stderr = (Path(path).read_text(encoding="utf-8") for path in streams)
    return subprocess.CompletedProcess(words, code, stdout, stderr)


class _Server:
    """The process that forks; it runs one command at a time and ends with this one."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parents[2],
            env=processes.clean_environ(),
        )
        theirs.close()
        self._answers = self._ours.makefile()
        atexit.register(self._close)

    def run(self, *request: Any) -> int:
        self._ours.sendall(json.dumps(request).encode() + b"\n")
        return int(self._answers.readline())

    def _close(self) -> None:
        self._answers.close()
        self._ours.close()
        self._process.wait()


_server = cache(_Server)


def _serve(connection: socket.socket) -> None:
    """Fork for each request, and answer with the exit code."""
    with connection, connection.makefile() as requests:
        for line in requests:
            child = os.fork()
            if child == 0:
                os.set_inheritable(connection.fileno(), False)
                _become_command(*json.loads(line))
            _, status = os.waitpid(child, 0)
            connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _become_command(
    words: list[str], cwd: str, environ: dict[str, str], out: list[str]
) -> NoReturn:
    """Do what `python -m ci_agent_eval` does in a new process."""
    for number, path in enumerate([os.devnull, *out]):
        flags = os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY
        os.dup2(os.open(path, flags), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    sys.path[0] = cwd
    sys.argv = ["agent-eval", *words]
    runpy.run_module("ci_agent_eval", run_name="__main__", alter_sys=True)
    raise AssertionError("the command returned without an exit code")


if __name__ == "__main__":
    for module in PRELOADED:
        importlib.import_module(module)
    _serve(socket.socket(fileno=int(sys.argv[1])))
