"""From a suite's end to its report: what a run that ended in its own way is said to be."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.processes import run_agent_eval


@pytest.fixture
def report_of(tmp_path):
    """Run a suite of one file and return the exit status, what was printed, and the verdict."""

    def run(tests: str, *pytest_args: str) -> tuple[int, str, dict[str, Any]]:
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        (tmp_path / "test_suite.py").write_text(tests)
        done = run_agent_eval("run", "test_suite.py", "--", *pytest_args, cwd=tmp_path)
        written = (tmp_path / "agent-eval-report/verdict.json").read_text()
        return done.returncode, done.stdout, json.loads(written)

    return run


def kinds(verdict: dict[str, Any]) -> list[str]:
    return [finding["kind"] for finding in verdict["summary"]["findings"]]


def test_an_interruption_is_said_once_and_is_no_disagreement(report_of):
    status, out, verdict = report_of(
        f"""
import os

def test_one(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    assert episode.turns

def test_two(episode): os.kill(os.getpid(), {int(signal.SIGINT)})

def test_three(episode): pass
"""
    )
    assert (status, kinds(verdict)) == (1, ["interrupted"]), out
    assert "1 of 3 selected episodes finished" in verdict["summary"]["findings"][0]["message"]
    shown = " ".join(out.split())
    assert shown.count("interrupted: KeyboardInterrupt") == 2, (
        "once in pytest's summary, once in the report"
    )
    assert "1 test ran" not in out


def test_a_stop_at_the_first_failure_is_named_as_such(report_of):
    tests = "import pytest\npytestmark = pytest.mark.episode(evidence='none')\n"
    tests += "def test_0(episode): assert 0\n"
    tests += "".join(f"def test_{n}(episode): pass\n" for n in range(1, 20))
    status, out, verdict = report_of(tests, "-x", "-n2")
    assert (status, kinds(verdict)) == (1, ["interrupted"]), out
    message = verdict["summary"]["findings"][0]["message"]
    assert message.startswith("pytest stopped early at a limit of its own, as with -x")
    assert "run the suite again" not in message


ENDS_ITS_RUNNER = """
import os, pytest, signal

@pytest.mark.episode(evidence="none")
def test_one(episode): pass

class Plugin:
    def pytest_unconfigure(self):
        os.kill(os.getppid(), signal.SIGKILL)

import pytest

@pytest.fixture(autouse=True, scope="session")
def registered(pytestconfig):
    pytestconfig.pluginmanager.register(Plugin())
"""
DIES_AT_ITS_END = ENDS_ITS_RUNNER.replace("os.getppid()", "os.getpid()")


def test_a_runner_that_saw_no_end_of_its_suite_proves_nothing(tmp_path):
    """A job is cancelled, or runs out of memory, once the tests have passed."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_suite.py").write_text(ENDS_ITS_RUNNER)
    killed = run_agent_eval("run", "test_suite.py", cwd=tmp_path)
    assert killed.returncode == -signal.SIGKILL
    done = run_agent_eval("report", "--results", "agent-eval-report", cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert "how pytest's process ended is not known" in " ".join(done.stdout.split())


def test_a_suite_that_is_killed_at_its_end_fails_wherever_it_is_read(report_of, tmp_path):
    status, out, verdict = report_of(DIES_AT_ITS_END)
    assert (status, kinds(verdict)) == (1, ["disagreement"]), out
    done = run_agent_eval("report", "--results", "agent-eval-report", cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    said = "pytest ended with status 137, but its session says 0"
    assert said in " ".join(out.split())
    assert said in " ".join(done.stdout.split())


def test_subtests_leave_a_passing_suite_green(report_of):
    status, out, verdict = report_of(
        """
def test_episode(episode, subtests):
    for number in range(3):
        with subtests.test(number=number):
            assert number < 3
    with episode.turn("Hello") as turn:
        turn.reply("Hi")

def test_plain(subtests):
    with subtests.test(): pass
    with subtests.test(): pass
""",
        "-n2",
    )
    assert (status, kinds(verdict)) == (0, []), out
