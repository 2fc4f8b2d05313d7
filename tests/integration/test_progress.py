"""Progress of a real run: on a pseudo-terminal, and in the log of a job."""

from __future__ import annotations

import os

import pytest

from tests.processes import run_agent_eval, started_on_terminal

SUITE = """
import pathlib

import pytest

@pytest.mark.episode("first")
async def test_first(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    assert episode.turns[0].content == "Bye"

@pytest.mark.episode("second", iterations=2)
async def test_second(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    if pathlib.Path("wait").exists():  # a pipe, whose other end the test opens
        pathlib.Path("wait").read_text()
    import acme_crm
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_suite.py").write_text(SUITE)
    return tmp_path


def test_on_a_terminal_the_running_episode_stands_below_the_counts(folder):
    os.mkfifo(folder / "wait")
    with started_on_terminal("-m", "ci_agent_eval", "run", ".", cwd=folder) as program:
        program.read_until("1/3 episodes · 1 failed in 1 scenario · 1 running · ")
        program.read_until("  second 1/2  ")
        with (folder / "wait").open("w"):
            (folder / "wait").unlink()
        rest = program.read_rest()
    assert program.process.returncode == 1
    assert rest.endswith("Report: agent-eval-report/report.html\n")
    assert "new failure" not in program.output
    assert "\x1b[31m" not in program.output, "NO_COLOR is set"


@pytest.mark.parametrize(("color", "is_colored"), [("auto", True), ("no", False)])
def test_on_a_terminal_pytest_and_progress_are_in_the_same_colours(folder, color, is_colored):
    command = ("-m", "ci_agent_eval", "run", ".", "--", f"--color={color}")
    with started_on_terminal(*command, cwd=folder, NO_COLOR="") as program:
        program.read_rest()
    shown = program.output
    assert ("\x1b[31m3/3 episodes" in shown) is is_colored
    assert ("\x1b[31mFAILED\x1b[0m test_suite.py" in shown) is is_colored


@pytest.mark.parametrize("arguments", ["-q -n 2", "-p no:terminal"])
def test_in_a_job_the_report_alone_has_the_causes_of_a_short_run(folder, arguments):
    done = run_agent_eval("run", ".", "--", *arguments.split(), cwd=folder, CI="true")
    assert done.returncode == 1
    assert ": new " not in done.stderr
    assert done.stdout.count("agent-eval run test_suite.py --scenario first\n") == 1
    # A report from another folder names the file from there.
    (folder / "below").mkdir()
    results = ["--results", "../agent-eval-report", "--format", "text"]
    done = run_agent_eval("report", *results, cwd=folder / "below", CI="true")
    assert "  again      agent-eval run ../test_suite.py --scenario first\n" in done.stdout


def test_the_command_of_a_failure_can_be_copied_from_another_folder(folder):
    done = run_agent_eval("run", folder.name, cwd=folder.parent, CI="true")
    lines = [line for line in done.stdout.splitlines() if line.endswith("--scenario first")]
    (command,) = [line.split()[2:] for line in lines]
    again = run_agent_eval(*command, cwd=folder.parent, CI="true")
    assert again.returncode == 1, again.stdout
    assert "1 episode: 1 failed" in again.stdout
