"""Run a suite: from the pytest command to the result files.

The suite never sees the reporter's token. Its output is passed on by line with secrets
redacted, as is the JUnit file that pytest writes.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.results import (
    EVAL_RESULTS_NAME,
    JUNIT_NAME,
    SESSION_NAME,
    AdaptivePlan,
    ScenarioListing,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor
from ci_agent_eval.runner.interpreter import Interpreter, inspect_interpreter, provide_plugin
from ci_agent_eval.runner.process import (
    MAX_LINE,
    Child,
    SuiteCommand,
    forward_signals,
    provide_suite_files,
    start_child,
)
from ci_agent_eval.runner.progress import JournalTail, RunProgress
from ci_agent_eval.storage.regular_file import open_regular_text, replace_file
from ci_agent_eval.storage.run_folder import ReportFolder

_REPORTER_VARIABLES = frozenset(
    {
        "GITHUB_TOKEN",
        "ACTIONS_RUNTIME_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "GITHUB_OUTPUT",
        "GITHUB_STEP_SUMMARY",
        "GITHUB_ENV",
        "GITHUB_PATH",
        "GITHUB_STATE",
    }
)
"""Variables that grant write access to the repository or control GitHub's runner."""

_INPUT = "INPUT_"
"""Prefix of the variables with an action's inputs, including the token."""

_LISTING_OPTIONS = frozenset(
    {
        *("--collect-only", "--collectonly", "--co", "--help", "-h", "--version", "-V", "-VV"),
        *("--fixtures", "--funcargs", "--fixtures-per-test", "--markers", "--cache-show"),
    }
)

_MISUSED = 4
"""pytest's exit status for unusable arguments and paths (`ExitCode.USAGE_ERROR`)."""
_USAGE_ERROR = re.compile(
    r"(?:\x1b\[[0-9;]*m)*(?:ERROR: (?!usage: )|[^:]+: error: )(?P<sentence>[^\x1b\n]+)"
)
"""pytest's message about them, with colors if they are forced."""
_LAST_LINES = 50

PROGRESS_SECONDS = 0.5
GRACE_SECONDS = 10.0
"""Time for an interrupted suite's teardown; GitHub's runner itself allows 7.5 s."""


def filter_suite_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a suite or its install commands: no reporter's variables."""
    return {
        name: value
        for name, value in environ.items()
        if name not in _REPORTER_VARIABLES and not name.upper().startswith(_INPUT)
    }


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """The result of running a suite's process."""

    exit_status: int
    """pytest's exit status, or 128 + the number of the signal that ended it."""
    interrupted_by: signal.Signals | None = None
    """The signal that this program received and forwarded."""
    killed_by: signal.Signals | None = None
    """The signal that ended the suite's process."""
    progress: RunProgress = field(default_factory=RunProgress)
    usage_error: str | None = None
    """pytest's message about an unusable argument or path."""
    has_begun: bool = True
    """Whether pytest's session began; otherwise the folder has the files of a run before."""
    only: str | None = None
    """The argument for which pytest ran no test, such as `--collect-only`."""


def run_suite(
    command: SuiteCommand,
    *,
    environ: Mapping[str, str],
    emit: Callable[[str], None],
    on_progress: Callable[[RunProgress], None] | None = None,
    grace_s: float = GRACE_SECONDS,
) -> SuiteRun:
    """Run the suite and return its result; both callbacks run on the caller's thread.

    `emit` gets every output line, with secrets redacted. `on_progress` is called about twice a
    second. Raises InputError if the interpreter cannot run the suite, or the report folder
    contains foreign files with our names.
    """
    environ = {**environ, **command.environ}
    redactor = Redactor.from_environ(environ)
    suite = _Suite.of(command, environ)
    _clear_report_folder(command.report_dir)
    last: deque[str] = deque(maxlen=_LAST_LINES)

    def remember(line: str) -> None:
        last.append(line)
        emit(line)

    session = command.report_dir / SESSION_NAME
    before = _find_version(session)

    def has_begun() -> bool:
        return _find_version(session) != before

    version = suite.interpreter.get_version("pytest")
    with (
        provide_suite_files(command) as plans,
        suite.start_pytest(
            lambda plugin: build_suite_command(command, plugin, version, plans), grace_s
        ) as child,
    ):
        tail = JournalTail(command.report_dir, has_begun)
        progress = _watch_child(child, redactor, tail, remember, on_progress)
    redact_xml(command.report_dir / JUNIT_NAME, redactor)
    run = replace(
        _build_result(child, progress),
        usage_error=_find_usage_error(last) if child.process.returncode == _MISUSED else None,
        has_begun=has_begun(),
        only=find_listing_option(command.all_args),
    )
    if run.has_begun:
        ReportFolder(command.report_dir).note_process_status(run.exit_status)
    return run


def _find_version(path: Path) -> tuple[int, int] | None:
    """Return inode and time of a file, which differ once it is replaced; None: there is none.

    The inode alone does not: file systems reuse that of a deleted file.
    """
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _find_usage_error(lines: Iterable[str]) -> str | None:
    """Return pytest's usage error; None if something else ended it, such as a conftest.py."""
    found = [match["sentence"].strip() for match in map(_USAGE_ERROR.match, lines) if match]
    return "; ".join(found) or None


def list_scenarios(
    command: SuiteCommand,
    *,
    environ: Mapping[str, str],
    emit: Callable[[str], None],
    grace_s: float = GRACE_SECONDS,
) -> ScenarioListing:
    """Collect the suite without running a test, and return its scenarios.

    Raises InputError if it cannot be collected, after passing its output to `emit`, or if the
    interpreter cannot run the suite.
    """
    environ = {**environ, **command.environ}
    redactor = Redactor.from_environ(environ)
    suite = _Suite.of(command, environ)
    with (
        TemporaryDirectory(prefix="agent-eval-") as folder,
        provide_suite_files(replace(command, adaptive_plan=AdaptivePlan())) as plans,
    ):
        file = Path(folder) / "scenarios.json"
        with suite.start_pytest(
            lambda plugin: _build_listing_command(command, plugin, file, plans), grace_s
        ) as run:
            lines = list(redactor.lines(filter(None, run.lines(PROGRESS_SECONDS))))
        status = run.process.returncode
        listing = _read_listing(file) if status in _COLLECTED else None
    if listing is None:
        for line in lines:
            emit(line)
        raise InputError(
            f"the suite cannot be collected (pytest ended with status {status}); its output above "
            "says why"
        )
    return listing


_COLLECTED = (0, 5)
"""pytest's exit statuses after a collection without errors: with tests and without any."""


def _read_listing(file: Path) -> ScenarioListing | None:
    try:
        return ScenarioListing.model_validate_json(file.read_bytes())
    except (OSError, ValueError):  # includes pydantic's ValidationError
        return None


@dataclass(frozen=True, slots=True)
class _Suite:
    """A suite's interpreter and environment."""

    interpreter: Interpreter
    environ: Mapping[str, str]
    cwd: Path | None

    @classmethod
    def of(cls, command: SuiteCommand, environ: Mapping[str, str]) -> _Suite:
        """Inspect the interpreter; raises InputError if it cannot run the suite."""
        for_suite = filter_suite_environ(environ)
        interpreter = inspect_interpreter(command.python, for_suite)
        interpreter.require_suite_support()
        return cls(interpreter, for_suite, command.cwd)

    @contextmanager
    def start_pytest(
        self, arguments: Callable[[str], list[str]], grace_s: float
    ) -> Iterator[Child]:
        """Start pytest, and stop it on exit; `arguments` takes the plugin's name."""
        with ExitStack() as stack:
            attach = stack.enter_context(forward_signals())
            plugin, folder = stack.enter_context(provide_plugin(self.interpreter))
            child = start_child(
                arguments(plugin), _extend_pythonpath(self.environ, folder), self.cwd, grace_s
            )
            stack.callback(child.stop)
            attach(child)
            yield child


def build_suite_command(
    command: SuiteCommand,
    plugin: str,
    pytest_version: tuple[int, ...],
    plans: Sequence[str] = (),
) -> list[str]:
    """Return the command line; paths come last, after `--`, so that none is read as an option.

    `--eval` also runs the evaluations below the paths; the plugin named by `-p` defines it.
    Our options follow the user's, because pytest uses the last value of a repeated option. Budget
    options precede them, so that a user's own budget wins.
    """
    report_dir = command.report_dir.absolute()
    ours = ["--episode-watched", f"--episode-report-dir={report_dir}"]
    ours += [f"--override-ini={setting}" for setting in _select_assertion_settings(pytest_version)]
    if find_listing_option(command.all_args) is None:
        # Without a run, pytest would write an empty JUnit file.
        ours.append(f"--junit-xml={report_dir / JUNIT_NAME}")
    if command.shard is not None:
        ours.append(f"--shard={command.shard}")
    ours += plans
    if command.suite is not None:
        ours.append(f"--episode-suite={command.suite}")
    if command.again is not None:
        # Failures are expected, and the report folder is the only place for results.
        eval_results = report_dir / EVAL_RESULTS_NAME
        ours += [
            f"--episode-again={command.again}",
            "--maxfail=0",
            f"--eval-results={eval_results}",
        ]
    if command.commit is not None:
        ours.append(f"--episode-commit={command.commit}")
    ours += _list_color_options(command)
    return _build_pytest_command(
        command, plugin, before=_budget_options(command.budgets), after=ours
    )


def _build_listing_command(
    command: SuiteCommand, plugin: str, listing: Path, plans: Sequence[str]
) -> list[str]:
    ours = ("--collect-only", "-q", f"--episode-list={listing}", *plans)
    return _build_pytest_command(command, plugin, before=(), after=ours)


def _build_pytest_command(
    command: SuiteCommand, plugin: str, *, before: Iterable[str], after: Iterable[str]
) -> list[str]:
    """Return pytest's command line, with our options before and after the user's."""
    suite_options, suite_paths = _split_paths(command.suite_args)
    options, paths = _split_paths(command.pytest_args)
    requested = [*paths, *command.paths]
    request = f"--episode-asked={json.dumps([*options, '--', *requested])}"
    program = (command.python, "-u", "-m", "pytest", "-p", plugin)
    named = [*suite_paths, *paths, *(command.paths or command.suite_paths)]
    return [*program, *before, *suite_options, *options, "--eval", *after, request, "--", *named]


def _select_assertion_settings(pytest_version: tuple[int, ...]) -> Sequence[str]:
    """Return the settings that make pytest explain failed assertions the same everywhere.

    By default it explains more if `CI` is set, or with `-vv`; older versions do so unless they
    explain everything.
    """
    if pytest_version < (8, 4):
        return ("verbosity_assertions=2",)
    return ("verbosity_assertions=1", "truncation_limit_lines=0", "truncation_limit_chars=0")


def _budget_options(budgets: SuiteBudgets) -> Iterator[str]:
    """Yield the plugin's options for hard budgets."""
    for kind, budget in budgets.iter_named():
        if kind.spent is not None and budget.hard:
            limit = math.floor(budget.limit) if kind.is_whole else budget.limit
            yield f"--{kind.name.replace('_', '-')}={limit}"


def _list_color_options(command: SuiteCommand) -> Sequence[str]:
    """Return the options for output in colour; pytest's terminal plugin defines them."""
    if not command.color or any(arg.endswith("no:terminal") for arg in command.all_args):
        return ()
    # Highlighted code could cut a secret into pieces that are not redacted.
    return "--color=yes", "--code-highlight=no"


def _split_paths(pytest_args: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Split the arguments at `--`, after which everything is a path."""
    if "--" not in pytest_args:
        return pytest_args, ()
    at = pytest_args.index("--")
    return pytest_args[:at], pytest_args[at + 1 :]


def find_listing_option(pytest_args: Sequence[str]) -> str | None:
    """Return the argument that makes pytest only list or print something; None if there is none."""
    return next((argument for argument in pytest_args if argument in _LISTING_OPTIONS), None)


def _clear_report_folder(report_dir: Path) -> None:
    """Remove a former run's files, so that they are not read as this run's."""
    try:
        ReportFolder(report_dir).clear(with_junit=True)
    except OSError as error:
        raise InputError(
            f"{report_dir}: cannot be written ({error.strerror}); choose another --report-dir"
        ) from None


def _extend_pythonpath(environ: Mapping[str, str], folder: Path | None) -> Mapping[str, str]:
    if folder is None:
        return environ
    known = environ.get("PYTHONPATH")
    return {**environ, "PYTHONPATH": f"{folder}{os.pathsep}{known}" if known else str(folder)}


def _watch_child(
    child: Child,
    redactor: Redactor,
    tail: JournalTail,
    emit: Callable[[str], None],
    on_progress: Callable[[RunProgress], None] | None,
) -> RunProgress:
    """Pass on lines and progress until the child has ended; return the last progress."""
    latest = RunProgress()
    next_update = 0.0

    def update_progress() -> None:
        nonlocal latest, next_update
        next_update = time.monotonic() + PROGRESS_SECONDS
        latest = tail.progress()
        if on_progress is not None:
            on_progress(latest)

    def lines() -> Iterator[str]:
        for line in child.lines(PROGRESS_SECONDS):
            if line is not None:
                yield line
            if time.monotonic() >= next_update:
                update_progress()

    for line in redactor.lines(lines()):
        emit(line)
    update_progress()
    return latest


def _build_result(child: Child, progress: RunProgress) -> SuiteRun:
    status = child.process.returncode
    killed_by = signal.Signals(-status) if status < 0 else None
    return SuiteRun(
        exit_status=status if killed_by is None else 128 + killed_by,
        interrupted_by=child.interrupted_by,
        killed_by=killed_by,
        progress=progress,
    )


def redact_xml(path: Path, redactor: Redactor) -> None:
    """Redact secrets in an XML file, atomically.

    A missing or irregular file is skipped: the loader reports it.
    """
    try:
        source = open_regular_text(path)
    except OSError:
        return
    with source, replace_file(path) as target:
        target.writelines(redactor.xml_lines(_iter_chunks(source)))


def _iter_chunks(file: IO[str]) -> Iterator[str]:
    while line := file.readline(MAX_LINE):
        yield line
