"""Counting of a pytest run's tests with `--collect-only` in a separate process.

This imports the suite's code, so it happens only if the settings limit the number of tests.
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
    """Return the suite's interpreter: the configured, the active environment's, or this one."""
    if configured := environ.get("AGENT_EVAL_PYTHON"):
        return configured
    environment = environ.get("VIRTUAL_ENV")
    return str(Path(environment) / "bin/python") if environment else sys.executable


def build_suite_counter(
    folder: Path, environ: Mapping[str, str]
) -> Callable[[tuple[str, ...]], int | None]:
    """Build a counter that runs the suite's own pytest in a folder."""
    return build_pytest_counter(find_suite_python(environ), folder, environ)


def build_pytest_counter(
    python: str, folder: Path, environ: Mapping[str, str], *, time_limit: float = TIME_LIMIT_S
) -> Callable[[tuple[str, ...]], int | None]:
    """Build a counter that runs an interpreter's pytest in a folder; it returns None on failure.

    `time_limit` is in seconds.
    """

    def count(arguments: tuple[str, ...]) -> int | None:
        command = [python, "-m", "pytest", "--collect-only", "-q", *arguments]
        output = _run_pytest(command, folder, environ, time_limit)
        return None if output is None else parse_count(output)

    return count


def parse_count(output: str) -> int | None:
    """Parse pytest's count, printed by `-q`, or its counts per file, printed by `-qq`."""
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
            # A separate process group, to kill processes that the suite starts on import.
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
    # After a usage error pytest prints the same text as for an empty suite.
    return None if process.returncode == _USAGE_ERROR else output.decode("utf-8", "replace")
