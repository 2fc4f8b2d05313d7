"""Running a suite in a process of its own: what it is given, what comes back, how it stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.results import Results, Session
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor
from ci_agent_eval.results.load import load_results
from ci_agent_eval.runner import RunProgress, SuiteCommand, SuiteRun, run_suite
from ci_agent_eval.runner.interpreter import Interpreter, inspect_interpreter, provide_plugin
from ci_agent_eval.runner.progress import JournalTail
from ci_agent_eval.runner.suite import build_suite_command, redact_xml

SUITE = """
def test_one(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi", cost_usd=0.5)
    assert episode.turns

def test_two(episode):
    episode.budget("emails", 1, used=2)
    assert 1 == 2

def test_three(episode):
    raise ConnectionError
"""
QUIET = ("-p", "no:cacheprovider")


@pytest.fixture
def environ():
    outer = ("PYTEST_", "COV_", "COVERAGE_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(outer)}
    # Hypothesis' plugin would import all of hypothesis in every run: 1 s each.
    return kept | {"PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:randomly"}


@pytest.fixture
def run(tmp_path, environ):
    """Run a suite of one file; what it printed is in `lines`, its progress in `progress`."""

    class Runs:
        folder = tmp_path / "report"

        def __call__(
            self, tests=SUITE, env=None, grace_s=10.0, on_line=None, **command
        ) -> SuiteRun:
            (tmp_path / "pytest.ini").write_text("[pytest]\n")
            (tmp_path / "test_suite.py").write_text(tests)
            self.lines, self.progress = [], []

            def emit(line: str) -> None:
                self.lines.append(line)
                if on_line is not None:
                    on_line(line)

            command.setdefault("pytest_args", QUIET)
            return run_suite(
                SuiteCommand(report_dir=self.folder, paths=["."], cwd=tmp_path, **command),
                environ={**environ, **(env or {})},
                emit=emit,
                on_progress=self.progress.append,
                grace_s=grace_s,
            )

        @property
        def output(self) -> str:
            return "".join(self.lines)

        @property
        def session(self) -> Session:
            return Session.model_validate_json((self.folder / "session.json").read_bytes())

        @property
        def results(self) -> Results:
            return Results.model_validate_json((self.folder / "results.json").read_bytes())

    return Runs()


def test_a_run_leaves_its_files_and_says_how_it_went(run):
    ran = run(suite="desk")
    last = RunProgress(finished=3, selected=3, failed=1, errors=1, violations=1, cost_usd=0.5)
    assert ran == SuiteRun(exit_status=1, progress=last)
    assert run.progress[-1] == last
    assert run.results.suite == "desk"
    assert len(run.results.episodes) == 3
    assert "agent_eval.scenario_id" in (run.folder / "junit.xml").read_text()
    assert "3 episodes: 1 passed, 1 failed, 1 errored" in run.output


def test_progress_tells_what_judging_cost_too(run):
    tests = """
from ci_agent_eval.contract.trajectory import TokenUsage

def test_one(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi", cost_usd=0.5)
    episode.record_judge(TokenUsage(input=9), 0.25)
"""
    assert run(tests).progress.cost_usd == 0.75


def test_progress_comes_while_the_suite_runs(run):
    # The second test waits until the first one's end has been seen here.
    tests = """
import pathlib, time, pytest

pytestmark = pytest.mark.episode(evidence="none")

def test_one(episode): pass

def test_two(episode):
    seen = pathlib.Path("seen")
    ends = time.monotonic() + 800  # a hang, however slow the machine
    while not seen.exists() and time.monotonic() < ends:
        print("waiting", flush=True)
    assert seen.exists()
"""
    seen = run.folder.parent / "seen"

    def look(line: str) -> None:
        if any(progress.finished == 1 for progress in run.progress):
            seen.touch()

    ran = run(tests=tests, on_line=look, pytest_args=[*QUIET, "-s"])
    assert ran.exit_status == 0
    assert RunProgress(finished=1, selected=2) in run.progress


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


def test_secrets_are_in_neither_output_nor_junit(run):
    secret = "Zx9<plain>&value"
    run(
        tests="""
import os
def test_one(episode):
    print(os.environ["DESK_API_KEY"])
    assert os.environ["DESK_API_KEY"] == "guess"
""",
        env={"DESK_API_KEY": secret},
        pytest_args=[*QUIET, "-rP"],
    )
    junit = (run.folder / "junit.xml").read_text()
    assert "[redacted]" in run.output
    assert "[redacted]" in junit
    for text in (run.output, junit):
        assert secret not in text
        assert "Zx9&lt;plain" not in text


def test_a_former_runs_files_are_gone_even_if_pytest_never_starts(run):
    run()
    ran = run(pytest_args=["--no-such-option"])
    assert ran.exit_status == pytest.ExitCode.USAGE_ERROR
    left = sorted(path.name for path in run.folder.rglob("*") if path.is_file())
    assert left == [".gitignore"]


def test_paths_are_never_options(run, tmp_path):
    arguments = build_suite_command(SuiteCommand(tmp_path, ["--exitfirst"]), "plugin", (9, 2))
    assert arguments[-2:] == ["--", "--exitfirst"]


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


@pytest.mark.parametrize(
    "users", [["--junitxml=other.xml"], ["--junit-xml", "other.xml", "--episode-report-dir=other"]]
)
def test_no_argument_of_the_users_takes_our_files_away(run, users):
    run(pytest_args=[*QUIET, *users])
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_suite_and_what_finished_is_kept(tmp_path, environ, number):
    """In a process of its own: it is this process that gets the signal."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_suite.py").write_text(
        "import pytest, signal\n"
        "@pytest.mark.episode(evidence='none')\n"
        "def test_one(episode): pass\n"
        "def test_two(episode):\n"
        "    with episode.turn('Hello') as turn:\n"
        "        turn.tool_call('lookup')\n"
        "        print('in the middle', flush=True)\n"
        "        signal.pause()\n"
    )
    parent = f"""
import os, signal, sys
from pathlib import Path
from ci_agent_eval.runner import SuiteCommand, run_suite

def emit(line):
    if "in the middle" in line:
        os.kill(os.getpid(), {int(number)})

command = SuiteCommand(Path("report"), ["."], pytest_args=["-s"])
ran = run_suite(command, environ=os.environ, emit=emit)
print(ran.exit_status, ran.interrupted_by.name, ran.killed_by and ran.killed_by.name)
"""
    done = subprocess.run(
        [sys.executable, "-c", parent],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = {"SIGINT": "2 SIGINT None", "SIGTERM": "143 SIGTERM SIGTERM"}[number.name]
    assert done.stdout.strip() == said, done.stderr
    session = Session.model_validate_json((tmp_path / "report/session.json").read_bytes())
    assert session.state == {"SIGINT": "interrupted", "SIGTERM": "running"}[number.name]
    journal = (tmp_path / "report/episodes/main.jsonl").read_text()
    assert '"event":"ended"' in journal


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
from ci_agent_eval.runner import SuiteCommand, run_suite

def emit(line):
    if "deaf" in line:
        os.kill(os.getpid(), signal.SIGINT)

command = SuiteCommand(Path("report"), ["."], pytest_args=["-s"])
ran = run_suite(command, environ=os.environ, emit=emit, grace_s=0.2)
print(ran.exit_status, ran.interrupted_by.name, ran.killed_by.name)
"""
    done = subprocess.run(
        [sys.executable, "-c", parent],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "137 SIGINT SIGKILL", done.stderr


def test_a_suite_that_kills_itself_is_told_apart_from_one_that_failed(run):
    ran = run(tests="import os\ndef test_one(episode): os.kill(os.getpid(), 9)\n")
    assert (ran.exit_status, ran.killed_by) == (137, signal.SIGKILL)
    assert run.session.state == "running"
    assert (run.session.watched, run.session.process_status) == (True, 137)


@pytest.mark.parametrize("garbage", ["{}", "nonsense"])
def test_what_is_no_session_is_left_to_who_reads_it(run, garbage):
    run(
        tests=f"""
import atexit
from pathlib import Path

def test_one(episode, pytestconfig):
    session = Path(pytestconfig.option.episode_report_dir, "session.json")
    atexit.register(session.write_text, {garbage!r})
"""
    )
    assert (run.folder / "session.json").read_text() == garbage


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


@pytest.fixture(scope="module")
def bare_venv(tmp_path_factory) -> str:
    """An interpreter with pytest and pydantic, but without this package."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    # The packages are borrowed from the outer environment by a .pth file, this one left out.
    site = next(folder.glob("lib/python*/site-packages"))
    for entry in Path(pytest.__file__).parent.parent.iterdir():
        if "ci_agent_eval" not in entry.name and not entry.name.endswith(".pth"):
            (site / entry.name).symlink_to(entry)
    return str(folder / "bin" / "python")


def test_an_interpreter_without_the_plugin_is_lent_it_and_nothing_else(run, bare_venv, environ):
    interpreter = inspect_interpreter(bare_venv, environ)
    assert not interpreter.has_plugin
    with provide_plugin(interpreter) as (name, lent):
        assert name == "ci_agent_eval.pytest_plugin"
        assert lent is not None
        assert [path.name for path in lent.iterdir()] == ["ci_agent_eval"]
    tests = (
        "def test_one(episode):\n"
        "    with episode.turn('hello') as turn: turn.reply('hello')\n"
        "    episode.check('a', True)\n"
    )
    ran = run(python=bare_venv, tests=tests)
    assert ran.exit_status == 0, run.output
    assert run.results.episodes[0].assertions[0].file == "test_suite.py"


def test_ones_own_interpreter_is_not_started_to_be_asked(environ):
    assert inspect_interpreter(sys.executable, environ).packages["pytest"] == pytest.__version__


@pytest.mark.parametrize("autoload", ["", "1"])
def test_an_installed_plugin_is_loaded_once_with_and_without_autoload(run, autoload):
    ran = run(env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": autoload} if autoload else {})
    assert ran.progress.finished == 3, run.output


@pytest.mark.parametrize(
    ("version", "packages", "sentence"),
    [
        ((3, 9), {}, "is Python 3.9; the plugin needs 3.11 or newer"),
        ((3, 11), {"pytest": None}, "has no pytest; install ci-agent-eval[pytest] there"),
        ((3, 11), {"pydantic": None}, "has no pydantic; install"),
        ((3, 11), {"pytest": "7.4.0"}, "has pytest 7.4.0; the plugin needs 8 or newer"),
        ((3, 11), {"pydantic": "1.10.26"}, "has pydantic 1.10.26; the plugin needs 2 or newer"),
    ],
)
def test_an_interpreter_that_cannot_run_suites_says_why(version, packages, sentence):
    all_packages = {"ci-agent-eval": None, "pytest": "9.0", "pydantic": "2.12", **packages}
    with pytest.raises(InputError) as raised:
        Interpreter("/venv/bin/python", version, all_packages).require_suite_support()
    assert sentence in str(raised.value)


def test_an_interpreter_that_is_none(run, tmp_path):
    with pytest.raises(InputError, match="cannot run the suite"):
        run(python=str(tmp_path / "no-python"))


def test_a_half_written_line_is_counted_when_it_is_whole(tmp_path):
    line = '{"event":"ended","episode":{"scenario_id":"a","outcome":"failed"}}\n'
    journal = tmp_path / "episodes" / "main.jsonl"
    journal.parent.mkdir()
    tail = JournalTail(tmp_path)
    journal.write_text(line[:20])
    assert tail.progress() == RunProgress()
    journal.write_text(line + "{broken\n")
    assert tail.progress() == RunProgress(finished=1, failed=1)
    assert tail.progress() == RunProgress(finished=1, failed=1)


@pytest.mark.parametrize("name", ["session.json", "episodes/main.jsonl"])
def test_progress_waits_for_no_pipe_and_follows_no_link(tmp_path, name):
    line = '{"event":"ended","episode":{"scenario_id":"a","outcome":"failed"}}\n'
    (tmp_path / "elsewhere").write_text(line)
    (tmp_path / "episodes").mkdir()
    os.mkfifo(tmp_path / name)
    assert JournalTail(tmp_path).progress() == RunProgress()
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    assert JournalTail(tmp_path).progress() == RunProgress()


def test_redacting_touches_only_regular_files_and_keeps_who_may_read_them(tmp_path):
    path = tmp_path / "junit.xml"
    (tmp_path / "secret").write_text("Zx9-plain")
    path.symlink_to("secret")
    redact_xml(path, Redactor(("Zx9-plain",)))
    assert (path.is_symlink(), path.read_text()) == (True, "Zx9-plain")
    path.unlink()
    path.write_text("Zx9-plain")
    path.chmod(0o644)
    redact_xml(path, Redactor(("Zx9-plain",)))
    assert (path.stat().st_mode & 0o777, path.read_text()) == (0o644, "[redacted]")


def test_redacting_a_file_keeps_every_other_byte(tmp_path):
    path = tmp_path / "junit.xml"
    path.write_bytes(b"\xff a Zx9-plain b\r\nc\nno newline at the end")
    redact_xml(path, Redactor(("Zx9-plain",)))
    assert path.read_bytes() == b"\xff a [redacted] b\r\nc\nno newline at the end"
    assert list(tmp_path.iterdir()) == [path]
    redact_xml(tmp_path / "missing.xml", Redactor())
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("argument", ["--collect-only", "--help", "--version"])
def test_a_pytest_that_was_told_to_run_nothing_is_named(run, argument):
    ran = run(pytest_args=[*QUIET, argument])
    assert (ran.exit_status, ran.only) == (0, argument)
    # No JUnit file is left of a run that was none: the next one would take it for a stranger's.
    left = sorted(path.name for path in run.folder.rglob("*") if path.is_file())
    assert left == [".gitignore"]
    assert run().only is None


def test_nothing_is_touched_where_a_file_of_others_is_in_the_folder(run):
    run()
    (run.folder / "results.json").write_text("[]")
    before = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="was not written by this program"):
        run()
    after = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    assert after == before
