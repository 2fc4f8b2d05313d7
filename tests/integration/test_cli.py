"""The command line as a person meets it: real processes, real files, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ci_agent_eval.config.options import OPTIONS
from tests.integration.refund_desk import ROOT, verdict
from tests.processes import run_agent_eval
from tests.tables import each_row


def test_the_example_fails_for_its_two_reasons(failed_desk):
    done = failed_desk.process
    assert done.returncode == 1, done.stderr
    assert "── refund_over_limit 0/1 · fails asks a manager before" in done.stdout
    assert "── refund_by_email tool calls 6 (limit 4)" in done.stdout
    shown = {
        (r["kind"], r["scenario_id"]) for r in verdict(failed_desk.folder)["verdict"]["reasons"]
    }
    assert shown == {("scenario", "refund_over_limit"), ("budget", "refund_by_email")}
    assert {path.name for path in failed_desk.report.iterdir()} == {
        ".gitignore",
        "annotations.json",
        "comment.md",
        "episodes",
        "junit.xml",
        "report.html",
        "results.json",
        "session.json",
        "summary.md",
        "verdict.json",
    }


@pytest.mark.parametrize("group", [(), ("steer",)])
def test_help_shows_the_whole_summary_of_each_command(agent_eval, group):
    commands = agent_eval(*group, "--help").stdout.partition("Commands:")[2]

    assert commands
    assert "..." not in commands


def test_help_shows_common_options_in_groups_and_help_all_shows_all(agent_eval):
    common, every = (agent_eval("run", flag).stdout for flag in ("--help", "--help-all"))
    flags = {f"--{option.name}" for option in OPTIONS if option.key[0] != "publish"}

    assert {flag for flag in flags if f"  {flag}" not in every} == set()
    assert "\nGate:\n  --min-pass-rate" in common
    assert "--help-all" in common
    assert "--max-latency-increase" not in common
    assert len(common) < len(every) / 2


SAME_BYTES = (
    "results.json",
    "verdict.json",
    "comment.md",
    "annotations.json",
    "summary.md",
    "report.html",
)


def bytes_of(report):
    return {name: (report / name).read_bytes() for name in SAME_BYTES}


def test_the_same_results_are_the_same_bytes_for_any_order_and_worker_count(
    agent_eval, desk, failed_desk
):
    def run(*pytest_args, **environ):
        agent_eval("run", "desk", "--", *pytest_args, **environ)
        return bytes_of(desk.parent / "agent-eval-report")

    environ = {"PYTEST_ADDOPTS": "-p randomly -p no:cacheprovider", "PYTHONHASHSEED": "2"}
    again = run("-n", "2", **environ, TZ="Asia/Tokyo", LC_ALL="C")
    assert again == bytes_of(failed_desk.report)


def test_a_report_of_a_report_s_files_says_the_same(agent_eval, failed_desk, tmp_path):
    again = agent_eval(
        "report", "--results", failed_desk.copy_to(tmp_path), "--report-dir", "again"
    )
    assert again.returncode == 1
    for name in ("results.json", "comment.md", "annotations.json", "verdict.json", "report.html"):
        first, second = failed_desk.report / name, tmp_path / "again" / name
        assert first.read_bytes() == second.read_bytes(), name


def test_collection_errors_are_one_block_for_each_error(agent_eval, tmp_path):
    (tmp_path / "desk").mkdir()
    for name in ("test_one.py", "desk/test_two.py"):
        (tmp_path / name).write_text("import nothing_of_that_name\n")
    (tmp_path / "test_syntax.py").write_text("def (:\n")
    done = agent_eval("run", "test_one.py", "desk", "test_syntax.py")
    blocks = [line for line in done.stdout.splitlines() if line.startswith("── ")]
    missing = "ModuleNotFoundError: No module named 'nothing_of_that_name'"
    one, several = (line for line in blocks if "collection" in line)
    assert one.startswith("── collection error in test_syntax.py: SyntaxError: invalid syntax ─")
    assert several.startswith("── 2 collection errors: ModuleNotFoundError: No module named")
    assert done.stdout.count(f"E   {missing}") == 3  # pytest names it for each file
    assert "Install nothing_of_that_name where the suite runs" in done.stdout
    assert "\n  desk/test_two.py, test_one.py\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothere"], "file or directory not found: nothere"),
        (["desk", "--", "--no-such-option"], "unrecognized arguments: --no-such-option"),
        (["desk", "--", "--color=yes", "-n", "x"], "argument -n/--numprocesses: invalid"),
    ],
)
def test_what_pytest_cannot_use_is_wrong_use_and_no_former_report_stands_in(
    agent_eval, passed_desk, desk, arguments, sentence
):
    passed_desk.copy_to(desk.parent)
    assert verdict(desk.parent)["conclusion"] == "success"
    done = agent_eval("run", *arguments)
    assert done.returncode == 2, done.stdout
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    document = verdict(desk.parent)
    assert document["conclusion"] == "failure"
    (finding,) = document["summary"]["findings"]
    assert finding["kind"] == "collection_error"
    assert sentence in finding["message"]


def test_a_conftest_that_cannot_be_imported_is_no_wrong_use(agent_eval, tmp_path):
    (tmp_path / "conftest.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")
    done = agent_eval("run", "test_it.py")
    assert done.returncode == 1
    assert verdict(tmp_path)["conclusion"] == "failure"


def test_no_results_is_a_failure_with_a_report(agent_eval, tmp_path):
    done = agent_eval("report", "--results", "nowhere/*.json")
    assert done.returncode == 1
    assert "nowhere/*.json" in (tmp_path / "agent-eval-report/comment.md").read_text()


@each_row(
    ("arguments", "config", "sentence"),
    [
        (
            ["report"],
            "",
            "agent-eval: no result files were named; give --results, --junit, or both",
        ),
        (["report", "--results", ""], "", "agent-eval: '' names no result files; give a file"),
        (
            ["report", "--junit", "x"],
            "[gate]\nmin_pas = 1\n",
            "agent-eval: agent-eval.toml:2: gate",
        ),
        (["report", "--config", "no.toml"], "", "no.toml: cannot be read"),
        (["run", "--min-pass-rate", "2"], "", "option --min-pass-rate: Input should be less than"),
        (["run", "--cassette=auto"], "", "Write options of pytest after `--`."),
        (["publish"], "", "agent-eval-report/verdict.json: cannot be read"),
        (["report", "--junit", "x"], "pytest_args = 'x'\n", "toml:1: pytest_args: must be a list"),
        (["run", "--python", "no-such-python"], "", "no-such-python cannot run the suite"),
        (["run", "--shard", "3/2"], "", "give a shard as INDEX/COUNT, such as 2/7 (got '3/2')"),
        (["report", "--formats", "html"], "", "unknown format 'html'; known formats: ctrf"),
        (["compare", "nowhere", "x"], "", "nowhere: no file or folder is at nowhere"),
        (["compare", "git:-x:y", "x"], "", "must be git:REF:PATH"),
        (
            ["report", "--results", "x", "--baseline", "artifact"],
            "",
            "known to the action alone",
        ),
        (["report", "--results", "a", "--mapping", "no.toml"], "", "check the setting mapping"),
    ],
)
def test_wrong_use_is_exit_2_and_one_sentence(tmp_path, arguments, config, sentence):
    (tmp_path / "agent-eval.toml").write_text(config)
    done = run_agent_eval(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_is_printed_as_it_was_written(agent_eval, passed_desk, tmp_path):
    passed_desk.copy_to(tmp_path)
    done = agent_eval("report", "--results", "agent-eval-report", "--format", "html")
    assert done.returncode == 0
    assert done.stdout == (tmp_path / "agent-eval-report/report.html").read_text()
    assert '"scenario":0,"outcome":"passed"' in done.stdout


@pytest.mark.parametrize("name", ["verdict.json", "report.html"])
def test_files_of_others_are_never_overwritten_nor_removed(agent_eval, desk, tmp_path, name):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / name).write_text("my notes")
    done = agent_eval("run", "desk", "--report-dir", "mine")
    assert done.returncode == 2
    assert f"{name}: was not written by this program" in done.stderr
    assert [path.name for path in folder.iterdir()] == [name]
    assert (folder / name).read_text() == "my notes"


def test_a_report_dir_that_is_a_file_is_told_so(agent_eval, desk, tmp_path):
    (tmp_path / "taken").write_text("")
    for arguments in (["run", "desk"], ["report", "--junit", "*.xml"]):
        done = agent_eval(*arguments, "--report-dir", "taken")
        assert done.returncode == 2
        assert "taken: a file is in the way" in done.stderr


def test_the_schema_is_printed(agent_eval):
    checked_in = (ROOT / "ci_agent_eval/contract/schema.json").read_text()
    assert agent_eval("schema").stdout == checked_in


PLAIN_AND_EPISODE = """
def test_episode(episode):
    with episode.turn("hello") as turn:
        turn.reply("hello", source="scripted")
    assert episode.turns

def test_plain():
    assert {passes}
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--", "--junitxml=other.xml"], 1), (["--", "-p", "no:junitxml"], 2)],
)
def test_a_failing_plain_test_fails_whatever_pytest_is_told(agent_eval, tmp_path, arguments, code):
    (tmp_path / "test_both.py").write_text(PLAIN_AND_EPISODE.format(passes=False))
    assert agent_eval("run", "test_both.py", *arguments).returncode == code
    assert verdict(tmp_path)["conclusion"] == "failure"


def test_a_status_of_pytest_that_nothing_explains_fails(agent_eval, tmp_path):
    (tmp_path / "test_both.py").write_text(PLAIN_AND_EPISODE.format(passes=True))
    (tmp_path / "conftest.py").write_text(
        "def pytest_sessionfinish(session):\n    session.exitstatus = 1\n"
    )
    done = agent_eval("run", "test_both.py")
    assert done.returncode == 1
    assert "pytest ended with status 1" in " ".join(done.stdout.split())


def test_commands_of_the_suite_stay_text_in_a_workflow_s_log(agent_eval, tmp_path):
    (tmp_path / "event.json").write_text('{"repository": {"full_name": "o/r"}}')
    (tmp_path / "test_loud.py").write_text(
        "def test_loud():\n    assert '''\n::error::x\n''' == ''\n"
    )
    environ = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "push",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_SHA": "a" * 40,
    }
    ran = agent_eval("run", "test_loud.py", **environ)
    assert ran.stdout.startswith("::stop-commands::")
    shown = agent_eval(
        "report", "--results", "agent-eval-report", "--format", "markdown", **environ
    )
    assert not [line for line in shown.stdout.splitlines() if line.lstrip().startswith("::")]


def test_a_dry_run_shows_what_would_be_published_and_all_that_is_missing(agent_eval, failed_desk):
    folder = failed_desk.report
    done = agent_eval("publish", "--dry-run", "--report-dir", str(folder))

    assert done.returncode == 1
    assert (folder / "comment.md").read_text() in done.stdout
    assert "\nCheck run agent-eval, failure, " in done.stdout
    names = "GITHUB_EVENT_NAME, GITHUB_EVENT_PATH, GITHUB_TOKEN"
    assert done.stdout.endswith(f"To publish, set {names}, as GitHub's workflows do.\n")
    done = agent_eval("publish", "--report-dir", str(folder))
    assert "set GITHUB_EVENT_NAME and GITHUB_EVENT_PATH, as" in done.stderr


def test_an_output_without_the_characters_of_a_report_shows_others(agent_eval, passed_desk):
    report = str(passed_desk.report)
    done = agent_eval("report", "--results", report, PYTHONIOENCODING="ascii")

    assert done.returncode == 0, done.stderr
    assert "Agent evals passed: 3 of 3 scenarios" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_reader_that_ends_early_changes_no_exit_code(failed_desk, tmp_path):
    command = [
        sys.executable,
        "-m",
        "ci_agent_eval",
        "report",
        "--results",
        str(failed_desk.report),
    ]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (1, "")
