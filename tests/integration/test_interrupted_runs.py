"""Runs that are killed, interrupted, doubled or stopped early: the report says so and fails."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.integration.refund_desk import verdict
from tests.processes import run_python, started_python, wait_for

SLOW_SUITE = """
import os, signal, pytest

@pytest.mark.episode(scenario_id="first")
def test_first(episode):
    with episode.turn("hello") as turn:
        turn.reply("hello", source="scripted")
    assert episode.turns

@pytest.mark.episode(scenario_id="second")
def test_second(episode):
    os.kill({target}, signal.SIGKILL)
    signal.pause()

@pytest.mark.episode(scenario_id="third")
def test_third(episode):
    pass
"""


def ended_by(number: signal.Signals, code: int, suite: str, *, folder: Path) -> None:
    """Run a suite until it says that it is ready, and end it."""
    with started_python("-m", "ci_agent_eval", "run", suite, "--", "-s", cwd=folder) as process:
        wait_for(process, "READY")
        process.send_signal(number)
        rest = process.communicate(timeout=600)[0]
    assert process.returncode == code, rest


def test_a_signal_leaves_a_report_of_what_finished_and_its_exit_code(tmp_path):
    suite = SLOW_SUITE.replace("os.kill({target}, signal.SIGKILL)", "print('READY', flush=True)")
    (tmp_path / "test_slow.py").write_text(suite)
    ended_by(signal.SIGINT, 130, "test_slow.py", folder=tmp_path)
    document = verdict(tmp_path)
    assert document["conclusion"] == "failure"
    assert document["counts"]["episodes"]["passed"] == 1


def test_a_signal_before_the_first_test_is_an_interruption(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "print('READY', flush=True)\n"
        "signal.pause()\n"
    )
    (tmp_path / "test_it.py").write_text("def test_it(episode): pass\n")
    ended_by(signal.SIGTERM, 143, ".", folder=tmp_path)
    (finding,) = verdict(tmp_path)["summary"]["findings"]
    assert (finding["kind"], finding["message"]) == (
        "interrupted",
        "SIGTERM ended it before it had begun",
    )


WAITS = """
def test_waits(episode):
    with episode.turn("Hi") as turn:
        answer = open("gate").read()
        turn.reply(answer)
    assert answer == "go"
"""


def test_two_runs_do_not_write_into_one_folder(agent_eval, tmp_path):
    (tmp_path / "test_waits.py").write_text(WAITS)
    os.mkfifo(tmp_path / "gate")
    arguments = ("-m", "ci_agent_eval", "run", "test_waits.py", "--", "-s")
    with started_python(*arguments, cwd=tmp_path) as first:
        # Opening the pipe waits for the test that reads it.
        with (tmp_path / "gate").open("w") as gate:
            for wrong in (
                agent_eval("run", "test_waits.py"),
                agent_eval("report", "--junit", "x.xml"),
            ):
                assert wrong.returncode == 2, wrong.stdout
                assert "another run is writing its results there" in wrong.stderr
                assert wrong.stderr.count("\n") == 1
            pytest_alone = run_python(
                *("-m", "pytest", "test_waits.py", "--episode-report-dir=agent-eval-report"),
                cwd=tmp_path,
            )
            assert pytest_alone.returncode == pytest.ExitCode.USAGE_ERROR
            gate.write("go")
        output, _ = first.communicate()
    assert first.returncode == 0, output
    assert verdict(tmp_path)["counts"]["episodes"]["passed"] == 1


def test_a_run_that_is_killed_leaves_no_verdict_of_the_run_before(
    agent_eval, passed_desk, tmp_path
):
    passed_desk.copy_to(tmp_path)
    (tmp_path / "test_slow.py").write_text(SLOW_SUITE.format(target="os.getppid()"))
    assert agent_eval("run", "test_slow.py").returncode == -signal.SIGKILL
    assert not (tmp_path / "agent-eval-report/verdict.json").exists()
    assert agent_eval("report", "--results", "agent-eval-report").returncode == 1


def test_results_of_an_interrupted_run_are_no_pass_wherever_they_are_carried(agent_eval, tmp_path):
    (tmp_path / "test_stop.py").write_text(
        "import pytest\n"
        "def test_first(episode):\n"
        "    with episode.turn('hello') as turn:\n"
        "        turn.reply('hello', source='scripted')\n"
        "    assert episode.turns\n"
        "def test_second(episode):\n"
        "    pytest.exit('enough', returncode=0)\n"
    )
    assert agent_eval("run", "test_stop.py").returncode == 1
    (tmp_path / "alone").mkdir()
    shutil.copy(tmp_path / "agent-eval-report/results.json", tmp_path / "alone")
    for source, target in [("alone", "b"), ("agent-eval-report", "c"), ("b", "d"), ("c", "e")]:
        done = agent_eval("report", "--results", source, "--report-dir", target)
        assert done.returncode == 1, (source, done.stdout)
