"""A child that is forked is the process that a new interpreter would be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click import Context

from ci_agent_eval.app.cli import cli
from ci_agent_eval.runner.process import _build_death_signal
from tests.processes import run_agent_eval, run_python

STATE = """
import ctypes, logging, os, signal, sys, threading, warnings

def pytest_configure(config):
    here = os.getpid()
    death_signal = ctypes.c_int()
    ctypes.CDLL(None).prctl(2, ctypes.byref(death_signal))  # PR_GET_PDEATHSIG
    group, session = os.getpgid(0), os.getsid(0)
    state = {
        "parent": os.getppid() == int(os.environ["ASKED_BY"]),
        "leads": (group == here, session == here),
        "joins": (group == os.getpgid(os.getppid()), session == os.getsid(os.getppid())),
        "folder": os.getcwd(),
        "arguments": (sys.argv, sys.orig_argv, sys.executable),
        "path": sys.path,
        "environ": dict(os.environ),
        "signals": {n: repr(signal.getsignal(n)).split(" at ")[0] for n in signal.valid_signals()},
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "death_signal": death_signal.value,
        "threads": threading.active_count(),
        "imports": [getattr(f, "__name__", type(f).__name__) for f in sys.meta_path],
        "logging": (repr(logging.root.handlers), logging.root.level),
        "warnings": list(map(repr, warnings.filters)),
        "streams": [
            (s.encoding, s.errors, s.newlines, s.line_buffering, s.write_through, s.fileno())
            for s in (sys.__stdin__, sys.__stdout__, sys.__stderr__)
        ],
        "main": [vars(sys.modules["__main__"])[f"__{name}__"] for name in ("name", "file")],
        "input": sys.__stdin__.read(),
    }
    print("STATE", __import__("json").dumps(state), flush=True)
"""


@pytest.fixture
def report_state(tmp_path):
    """Return the state of a run of pytest, with these options of Popen."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite/conftest.py").write_text(STATE)
    (tmp_path / "suite/test_one.py").write_text("def test_one(): pass")

    def report(*, cold, unbuffered=(), **options):
        environ = {**os.environ, "ASKED_BY": str(os.getpid()), "PYTHONPATH": f"{tmp_path}:other"}
        if cold:
            environ["COLD_CHILDREN"] = "1"
        done = subprocess.run(
            [sys.executable, *unbuffered, "-m", "pytest", "-s", "-p", "no:randomly", "suite"],
            cwd=tmp_path,
            env=environ,
            input="said to it",
            capture_output=True,
            text=True,
            check=False,
            **options,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (line,) = (line for line in done.stdout.splitlines() if line.startswith("STATE "))
        state = json.loads(line.removeprefix("STATE "))
        state["environ"].pop("COLD_CHILDREN", None)
        return state

    return report


@pytest.mark.parametrize(
    "options",
    [{}, {"process_group": 0}, {"start_new_session": True}, {"unbuffered": ["-u"]}],
    ids=lambda options: next(iter(options), "plain"),
)
def test_it_has_the_state_of_a_new_interpreter(report_state, options):
    assert report_state(cold=False, **options) == report_state(cold=True, **options)


def test_it_asks_for_a_signal_at_its_parents_death(report_state):
    ask = _build_death_signal()
    forked, cold = (report_state(cold=cold, preexec_fn=ask) for cold in (False, True))
    assert forked == cold
    assert forked["death_signal"] == signal.SIGTERM


def test_it_inherits_the_signals_that_are_ignored_or_blocked(report_state):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        forked, cold = report_state(cold=False), report_state(cold=True)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, before)
    assert forked == cold
    assert forked["signals"]["2"] == "<Handlers.SIG_IGN: 1>"
    assert forked["blocked"] == [signal.SIGUSR1]


def test_a_signal_ends_it(tmp_path):
    (tmp_path / "test_ends.py").write_text(
        "import os, signal\ndef test_one(): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert run_python("-m", "pytest", cwd=tmp_path).returncode == -signal.SIGKILL


def is_forked(folder: Path, *arguments: str, **environ: str) -> bool:
    """Say whether a run of pytest in this folder is forked: it has the fork server's command line."""
    (folder / "test_one.py").write_text(
        "from pathlib import Path\n"
        "def test_one(): assert 'fork_server' in Path('/proc/self/cmdline').read_text()\n"
    )
    return run_python("-m", "pytest", *arguments, cwd=folder, **environ).returncode == 0


forking = pytest.mark.skipif("COLD_CHILDREN" in os.environ, reason="not all children are forked")


@forking
def test_it_forks_its_own_children(tmp_path):
    assert is_forked(tmp_path, "-n1")


@forking
def test_what_a_new_interpreter_would_see_starts_one(tmp_path):
    shadowing = tmp_path / "shadowing"
    shadowing.mkdir()
    (shadowing / "pydantic.py").touch()
    hooked = tmp_path / "hooked"
    hooked.mkdir()
    (hooked / "sitecustomize.py").touch()
    installed = tmp_path / "installed"
    (installed / "pytest-8.0.dist-info").mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")  # no module
    assert is_forked(tmp_path)
    for environ in (
        {"PYTHONHASHSEED": "0"},
        {"TZ": "Asia/Tokyo"},
        {"LC_ALL": "C"},
        {"COLD_CHILDREN": "1"},
        *({"PYTHONPATH": str(folder)} for folder in (shadowing, hooked, installed)),
    ):
        assert not is_forked(tmp_path, **environ), environ


@pytest.fixture(scope="module")
def cold_cases():
    """Whether each case started a new interpreter."""
    return []


@forking
def test_the_first_child_of_a_command_in_a_test_function_may_start_cold(tmp_path):
    first = {"COLD_CHILDREN": "first"}
    assert [is_forked(tmp_path, **first) for _ in range(3)] == [False, True, True]


@forking
@pytest.mark.parametrize("number", range(2))
def test_it_starts_cold_once_for_all_cases_of_a_test_function(tmp_path, number, cold_cases):
    cold_cases.append(not is_forked(tmp_path, COLD_CHILDREN="first"))
    assert cold_cases.count(True) == 1


@pytest.mark.parametrize("command", cli.list_commands(Context(cli)))
def test_each_command_answers_the_same_in_a_new_interpreter(command, tmp_path):
    forked, cold = (
        run_agent_eval(command, "--help", cwd=tmp_path, **environ)
        for environ in ({}, {"COLD_CHILDREN": "1"})
    )
    assert cold.returncode == 0, cold.stderr
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        cold.returncode,
        cold.stdout,
        cold.stderr,
    )
