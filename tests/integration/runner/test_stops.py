"""Runs that a signal or an error ends, and processes that a suite leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.integration.runner.rig import QUIET


def run_parent(code, folder, environ):
    """Run the code of a process that runs a suite."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_suite_that_does_not_stop_is_killed_after_its_grace(tmp_path, environ):
    (tmp_path / "test_suite.py").write_text(
        "import signal\n"
        "def test_one(episode):\n"
        "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "    print('deaf', flush=True)\n"
        "    while True: signal.pause()\n"
    )
    parent = """
import os, signal
from pathlib import Path
from ci_agent_eval.runner.process import SuiteCommand
from ci_agent_eval.runner.suite import run_suite

def emit(line):
    if "deaf" in line:
        os.kill(os.getpid(), signal.SIGINT)

command = SuiteCommand(Path("report"), ["."], pytest_args=["-s"])
ran = run_suite(command, environ=os.environ, emit=emit, grace_s=0.2)
print(ran.exit_status, ran.interrupted_by.name, ran.killed_by.name)
"""
    done = run_parent(parent, tmp_path, environ)
    assert done.stdout.strip() == "137 SIGINT SIGKILL", done.stderr


def test_a_process_the_suite_leaves_behind_does_not_hold_the_run(run):
    ran = run(
        tests="""
import pytest, subprocess, sys
@pytest.mark.episode(evidence="none")
def test_one(episode):
    subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
""",
        pytest_args=[*QUIET, "-s", "-W", "ignore"],
    )
    assert ran.exit_status == 0


def test_an_error_of_the_callers_leaves_no_child(run, tmp_path):
    def broken(line: str) -> None:
        if "started" in line:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run(
            tests="import os, signal, pathlib\n"
            "pathlib.Path('pid').write_text(str(os.getpid()))\n"
            "print('started', flush=True)\n"
            "signal.pause()\n",
            on_line=broken,
            pytest_args=[*QUIET, "-s"],
        )
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death")
def test_a_killed_runner_leaves_no_suite(tmp_path, environ):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_suite.py").write_text(
        "import os, signal\n"
        "def test_one(episode):\n"
        "    os.kill(os.getppid(), signal.SIGKILL)\n"
        "    signal.pause()\n"
    )
    os.mkfifo(tmp_path / "alive")  # the suite holds its end open for as long as it runs
    parent = """
import os
from pathlib import Path
from ci_agent_eval.runner.process import SuiteCommand
from ci_agent_eval.runner.suite import run_suite

os.set_inheritable(os.open("alive", os.O_WRONLY), True)
run_suite(SuiteCommand(Path("report"), ["."]), environ=os.environ, emit=print)
"""
    command = [sys.executable, "-c", parent]
    with subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL) as runner:
        assert (tmp_path / "alive").read_bytes() == b""  # the end: nobody holds it any more
    assert runner.returncode == -signal.SIGKILL
