"""Run pytest in a copy of the project: in a new interpreter, or forked from one that is warm.

A warm process has imported pytest, the plugin and the engine, and nothing of the project, so a
forked run imports the whole project anew. A mutation that changes what the interpreter itself
does or imports needs a new interpreter (`Mutation.is_cold`).
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

TIMEOUT_S = 600
PLUGINS = ("-p", "no:randomly", "-p", "no:hypothesispytest")


class WarmProcess:
    """A process that forks one run after the other; a context manager."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env={**environ, "OPENBLAS_NUM_THREADS": "1"},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def run_pytest(
        self, arguments: Sequence[str], cwd: Path, environ: Mapping[str, str], log: Path
    ) -> int:
        assert self._process.stdin
        assert self._process.stdout
        request = [list(arguments), str(cwd), dict(environ), str(log)]
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def run_command(
    command: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    log: Path,
    errors: Path | None = None,
    *,
    cold: bool = True,
) -> int:
    """Run a command of Python; return its exit code. By default its errors are in the log too."""
    with log.open("wb") as output, (errors or Path(os.devnull)).open("wb") as error_output:
        return subprocess.run(
            [sys.executable, *(["-B"] if cold else []), *command],
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=error_output if errors else subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        ).returncode


def _become_pytest(arguments: list[str], cwd: str, environ: dict[str, str], log: str) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((nothing, output, output)):
        os.dup2(file, number)
    sys.path.insert(0, cwd)
    importlib.invalidate_caches()
    sys.argv = ["pytest", *arguments]
    import pytest

    # As an interpreter's end: threads are joined, functions of `atexit` run.
    sys.exit(pytest.main(arguments))


def _wait_for(pid: int) -> int:
    """Return the exit code of a child, which is killed after the time limit."""
    descriptor = os.pidfd_open(pid)
    if not select.select([descriptor], [], [], TIMEOUT_S)[0]:
        os.kill(pid, signal.SIGKILL)
    os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _preload() -> None:
    """Import what a run imports, plugins as pytest imports them."""
    from _pytest.config import _prepareconfig

    with tempfile.TemporaryDirectory() as folder:
        config = _prepareconfig(["-s", "-c", os.devnull, "--rootdir", folder, *PLUGINS])
        for name in _list_modules(Path(folder)):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        config._ensure_unconfigure()
    tempfile.tempdir = None


_EXAMPLE = """
import os
import sys

import jinja2
import pydantic_ai.models.function
from ci_agent_eval import conversation


@conversation("one", lambda: lambda message: {"text": "1", "source": "scripted"})
def test_one(agent):
    assert agent.send("1")


async def test_two(aitest_run):
    agent = pydantic_ai.Agent(pydantic_ai.models.function.FunctionModel(lambda *_: None))
    await aitest_run(agent, "2", raises=False)


def test_last(episode):
    with open("modules", "w") as file:
        file.write("\\n".join(name for name in sys.modules if not name.startswith("test_")))
"""


def _list_modules(folder: Path) -> list[str]:
    """Return the modules that a run of an example imports, in order."""
    (folder / "test_example.py").write_text(_EXAMPLE, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
    pid = os.fork()
    if pid == 0:
        report = f"--episode-report-dir={folder / 'report'}"
        try:
            _become_pytest([report, *PLUGINS], str(folder), dict(os.environ), str(folder / "log"))
        finally:
            os._exit(0)  # before the folder is removed
    os.waitpid(pid, 0)
    if not (folder / "modules").exists():
        raise RuntimeError((folder / "log").read_text("utf-8"))
    return (folder / "modules").read_text("utf-8").split()


def _serve() -> None:
    del sys.path[0]  # this module's folder
    _preload()
    del os.environ["OPENBLAS_NUM_THREADS"]
    gc.freeze()  # a child's collections pass over what is shared
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become_pytest(*request)
        print(_wait_for(pid), flush=True)


if __name__ == "__main__":
    _serve()
