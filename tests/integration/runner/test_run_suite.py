"""Running a suite in a process of its own: what it is given, what comes back, how it stops."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.results.load import load_results
from ci_agent_eval.runner.process import SuiteCommand
from ci_agent_eval.runner.progress import RunProgress
from ci_agent_eval.runner.suite import SuiteRun, build_suite_command
from tests.integration.runner.rig import QUIET


def test_a_run_leaves_its_files_and_says_how_it_went(run):
    ran = run(suite="desk")
    counts = RunProgress(3, 3, failed=1, errors=1, violations=1, cost_usd=0.5, failed_scenarios=1)
    last = run.progress[-1]
    assert replace(last, causes=()) == counts
    assert [first.cause.kind for first in last.causes] == ["check", "error"]
    assert ran == SuiteRun(exit_status=1, progress=last)
    assert run.results.suite == "desk"
    assert len(run.results.episodes) == 3
    assert "agent_eval.scenario_id" in (run.folder / "junit.xml").read_text()
    assert "3 episodes: 1 passed, 1 failed, 1 errored" in run.output
    assert "  again  " not in run.output, "the report has the blocks of the causes"


def test_the_suite_gets_the_environment_without_tokens_and_inputs_of_the_reporter(run):
    tokens = ["GITHUB_TOKEN", "INPUT_GITHUB-TOKEN", "ACTIONS_RUNTIME_TOKEN"]
    tokens += ["INPUT_MODE", "INPUT_INSTALL", "INPUT_COMMENT-AUTHOR", "input_anything"]
    tokens += ["ACTIONS_ID_TOKEN_REQUEST_TOKEN"]
    ran = run(
        tests=f"""
import os, pytest
@pytest.mark.episode(evidence="none")
def test_one(episode):
    assert os.environ["KEPT"] == "a" and os.environ["ADDED"] == "b"
    assert not set(os.environ) & set({tokens!r})
""",
        env={**dict.fromkeys(tokens, "secret"), "KEPT": "a"},
        environ={"ADDED": "b", "GITHUB_TOKEN": "again"},
    )
    assert ran.exit_status == 0, run.output


def test_a_run_is_stopped_at_the_hard_budgets_of_its_suite_unless_the_user_says_where(tmp_path):
    budgets = SuiteBudgets.model_validate(
        {
            "total_cost_usd": 0.25,
            "total_tokens": {"limit": 1000.5},
            "total_wall_time_s": {"limit": 60, "hard": False},
        }
    )
    command = SuiteCommand(tmp_path, ["."], ["--total-cost-usd=9"], budgets=budgets)
    arguments = build_suite_command(command, "plugin", (9, 2))
    given = [argument for argument in arguments if argument.startswith("--total")]
    # Of an option that is given twice the last one counts.
    assert given == ["--total-cost-usd=0.25", "--total-tokens=1000", "--total-cost-usd=9"]


@pytest.mark.parametrize(
    ("version", "explained"),
    [
        ((8, 3, 5), ["verbosity_assertions=2"]),
        (
            (8, 4),
            ["verbosity_assertions=1", "truncation_limit_lines=0", "truncation_limit_chars=0"],
        ),
    ],
)
def test_our_options_stand_behind_the_users_and_before_paths(tmp_path, version, explained):
    users = ["--junitxml=other.xml", "-q", "--", "tests/test_a.py"]
    arguments = build_suite_command(
        SuiteCommand(tmp_path, ["."], users, suite="desk"), "plugin", version
    )
    assert arguments[6:] == [
        *("--junitxml=other.xml", "-q", "--eval", "--episode-watched"),
        f"--episode-report-dir={tmp_path}",
        *(f"--override-ini={setting}" for setting in explained),
        *(f"--junit-xml={tmp_path / 'junit.xml'}", "--episode-suite=desk"),
        '--episode-asked=["--junitxml=other.xml", "-q", "--", "tests/test_a.py", "."]',
        *("--", "tests/test_a.py", "."),
    ]


def test_what_defines_the_suite_is_not_asked_of_the_run(tmp_path):
    command = SuiteCommand(
        tmp_path, suite_paths=["tests"], suite_args=["-m", "fast"], pytest_args=["-k", "x"]
    )
    arguments = build_suite_command(command, "plugin", (9, 2))
    assert arguments[6:10] == ["-m", "fast", "-k", "x"]
    assert arguments[-3:] == ['--episode-asked=["-k", "x", "--"]', "--", "tests"]


def test_no_argument_of_the_users_takes_our_files_away(run):
    run(pytest_args=[*QUIET, "--junit-xml", "other.xml", "--episode-report-dir=other"])
    assert (run.folder / "junit.xml").is_file()
    assert (run.folder / "results.json").is_file()
    assert not (run.folder.parent / "other.xml").exists()


PIPES = """
import os, pytest
from pathlib import Path

@pytest.mark.episode(evidence="none")
def test_one(episode, pytestconfig):
    os.mkfifo(Path(pytestconfig.option.episode_report_dir, "episodes", "zz.jsonl"))

@pytest.fixture(autouse=True, scope="session")
def piped(pytestconfig):
    junit = pytestconfig.option.xmlpath
    # Behind pytest's own writing of the file.
    pytestconfig.add_cleanup(lambda: (os.unlink(junit), os.mkfifo(junit)))
"""


def test_a_pipe_in_place_of_a_file_holds_nobody(run):
    ran = run(tests=PIPES)
    assert ran.exit_status == 0, run.output
    assert ran.progress.finished == 1
    assert (run.folder / "junit.xml").is_fifo()
    found = load_results([], [], root=run.folder.parent, runs=[run.folder])
    assert [(f.kind, f.where, f.message) for f in found.findings] == [
        ("unreadable_file", f"report/{name}", "it is not a regular file")
        for name in ("episodes/zz.jsonl", "junit.xml")
    ]


def test_a_suite_that_kills_itself_is_told_apart_from_one_that_failed(run):
    ran = run(tests="import os\ndef test_one(episode): os.kill(os.getpid(), 9)\n")
    assert (ran.exit_status, ran.killed_by) == (137, signal.SIGKILL)
    assert run.session.state == "running"
    assert (run.session.watched, run.session.process_status) == (True, 137)


def test_what_is_no_session_is_left_to_who_reads_it(run):
    run(
        tests="""
import atexit
from pathlib import Path

def test_one(episode, pytestconfig):
    session = Path(pytestconfig.option.episode_report_dir, "session.json")
    atexit.register(session.write_text, "{}")
"""
    )
    assert (run.folder / "session.json").read_text() == "{}"


@pytest.mark.parametrize("argument", ["--collect-only", "--help", "--version"])
def test_a_pytest_that_was_told_to_run_nothing_is_named(run, argument):
    ran = run(pytest_args=[*QUIET, argument])
    assert (ran.exit_status, ran.only) == (0, argument)
    # No JUnit file is left of a run that was none: the next one would take it for a stranger's.
    left = sorted(path.name for path in run.folder.rglob("*") if path.is_file())
    assert left == [".gitignore"]
