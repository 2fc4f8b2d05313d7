"""How many tests a run of pytest would have: it is asked, in a process of its own.

That imports the suite's code. It is done only where a limit on the tests is set.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

TIME_LIMIT_S = 20.0

_USAGE_ERROR = 4
"""pytest.ExitCode.USAGE_ERROR"""

_SUMMARY = re.compile(r"(?:^|= )(?:(\d+)/\d+|(\d+)|no) tests? collected\b", re.MULTILINE)
_PER_FILE = re.compile(r"^\S.*: (\d+)$", re.MULTILINE)


def find_suite_python(environ: Mapping[str, str]) -> str:
    """Return the suite's interpreter: the one that is set, the active environment's, or ours."""
    if chosen := environ.get("AGENT_EVAL_PYTHON"):
        return chosen
    active = environ.get("VIRTUAL_ENV")
    return str(Path(active) / "bin/python") if active else sys.executable


def build_suite_counter(
    folder: Path, environ: Mapping[str, str]
) -> Callable[[tuple[str, ...]], int | None]:
    """Return what asks the suite's own pytest, in a folder."""
    return build_pytest_counter(find_suite_python(environ), folder, environ)


def build_pytest_counter(
    python: str, folder: Path, environ: Mapping[str, str], *, time_limit: float = TIME_LIMIT_S
) -> Callable[[tuple[str, ...]], int | None]:
    """Return what asks the pytest of an interpreter, in a folder; None where it cannot say.

    `time_limit` is in seconds.
    """

    def count(arguments: tuple[str, ...]) -> int | None:
        command = [python, "-m", "pytest", "--collect-only", "-q", *arguments]
        output = _run_pytest(command, folder, environ, time_limit)
        return None if output is None else parse_count(output)

    return count


def parse_count(output: str) -> int | None:
    """Read pytest's own count, as `-q` prints it, or the lines of each file that `-qq` prints."""
    summary = None
    for summary in _SUMMARY.finditer(output):  # noqa: B007 - the last one counts
        pass
    if summary is not None:
        return int(summary[1] or summary[2] or 0)
    files = _PER_FILE.findall(output)
    return sum(map(int, files)) if files else None


def _run_pytest(
    command: list[str], folder: Path, environ: Mapping[str, str], time_limit: float
) -> str | None:
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # A group of its own: what the suite starts while it is collected ends with it.
            start_new_session=True,
        )
    except (OSError, ValueError):
        return None
    with process:
        try:
            output, _ = process.communicate(timeout=time_limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None
    # After wrong usage pytest counts nothing, and says so as it says it of an empty suite.
    return None if process.returncode == _USAGE_ERROR else output.decode("utf-8", "replace")
